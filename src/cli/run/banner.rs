//! What a network says when it is up.

use crate::cli::running;

/// How it is stopped, where it is watched, and commands to try; with its name, if others run that
/// the commands might mean.
pub fn up(name: &str, detached: bool, url: &str) -> String {
    let others = running::everywhere().iter().any(|n| n.fabric != name);
    text(name, detached, url, others)
}

fn text(name: &str, detached: bool, url: &str, others: bool) -> String {
    let stop_it = if detached { format!("`heliostat stop {name}`") } else { "Ctrl-C".into() };
    let named = if others { format!(" --name {name}") } else { String::new() };
    format!(
        "{name} is up; stop it with {stop_it}. Watch it at {url}/ or try: heliostat show circuits{named}, \
         heliostat exec{named} h0-0 ping -c1 10.1.0.2"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_network_where_there_are_others() {
        let alone = text("net", false, "http://x", false);
        assert!(alone.starts_with("net is up; stop it with Ctrl-C. Watch it at http://x/ or try: heliostat show circuits, "), "{alone}");
        let among = text("net", true, "http://x", true);
        assert!(among.contains("stop it with `heliostat stop net`"), "{among}");
        assert!(among.ends_with("heliostat show circuits --name net, heliostat exec --name net h0-0 ping -c1 10.1.0.2"), "{among}");
    }
}
