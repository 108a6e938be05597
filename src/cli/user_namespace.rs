//! Without root: one user namespace in which this process is root, where the kernel allows that.

use super::CliError;
use crate::fabric::kernel::sys;

/// Advice for a user who is not root and may not have user namespaces.
pub const REMEDY: &str =
    "run with sudo, or allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)";

/// Enters a fresh user namespace unless this process is root. Must be called before any thread is made.
///
/// # Errors
/// When the process is neither root nor allowed to have user namespaces.
pub fn enter_unless_root() -> Result<(), CliError> {
    if sys::is_root() {
        return Ok(());
    }
    sys::become_namespace_root()
        .map_err(|e| CliError::Failed(format!("neither root nor allowed to make a user namespace ({e}); {REMEDY}")))?;
    tracing::info!("not root: emulating inside a user namespace");
    Ok(())
}
