//! Without root: one user namespace in which this process is root, where the kernel allows that.

use super::CliError;
use crate::kernel::{rights, sys};

/// Advice for a user who is not root and may not have user namespaces.
pub const REMEDY: &str = "run with sudo, or allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)";

/// Advice for a user with some of the capabilities.
pub const GIVE: &str = "give them (setpriv, setcap, AmbientCapabilities= of systemd), or run as an ordinary user in a user namespace";

/// Enters a fresh user namespace unless this process is root, or has root's rights as far as they
/// are needed. Must be called before any thread is made.
///
/// # Errors
/// When the process lacks some of those rights and has others, or has none and may not have user
/// namespaces.
pub fn enter_unless_root() -> Result<(), CliError> {
    if let Some(missing) = rights::missing_of_some() {
        return Err(CliError::Failed(format!("this process lacks {missing}: {GIVE}")));
    }
    if rights::suffice() {
        return Ok(());
    }
    sys::become_namespace_root().map_err(|e| {
        CliError::Failed(format!(
            "neither root nor allowed to make a user namespace ({e}); {REMEDY}"
        ))
    })?;
    tracing::info!("not root: emulating inside a user namespace");
    Ok(())
}
