//! What bash and fish complete: names that are shipped, and those of a network that runs.

use std::path::Path;

use crate::support::*;

/// What the function that bash registers for `heliostat` offers for the last of these words.
fn offers(words: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_heliostat"));
    let script = r#"
        source <(heliostat completions bash)
        COMP_WORDS=($1) COMP_TYPE=9
        case $1 in *' ') COMP_WORDS+=('') ;; esac
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        registered=$(complete -p heliostat)
        [[ $registered =~ -F\ ([^ ]+) ]]
        "${BASH_REMATCH[1]}" heliostat "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = std::process::Command::new("bash");
    let path = format!(
        "{}:{}",
        program.parent().expect("a directory").display(),
        std::env::var("PATH").expect("a path")
    );
    let o = output(
        bash.args(["-c", script, "bash", words])
            .env("PATH", path)
            .env_remove("HELIOSTAT_CONTROLLER")
            .current_dir(file("")),
    );
    assert!(o.status.success(), "{words}: {}", said(&o));
    String::from_utf8(o.stdout)
        .expect("text")
        .lines()
        .filter(|l| !l.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_commands_shipped_names_and_files() {
    assert_eq!(offers("heliostat experi"), ["experiment"]);
    assert_eq!(offers("heliostat run hybrid-8"), ["hybrid-8x2"]);
    assert_eq!(offers("heliostat simulate hybrid-8x2 --policy sinc"), ["sincronia"]);
    assert_eq!(
        offers("heliostat simulate hybrid-8x2 --policy policies/sinc"),
        ["policies/sincronia.yaml"]
    );
    let shown = offers("heliostat show ");
    assert!(shown.contains(&"circuits".into()) && shown.contains(&"demand".into()), "{shown:?}");
}

#[test]
fn bash_completes_the_names_of_a_running_network() {
    if !root("bash_completes_the_names_of_a_running_network") {
        return;
    }
    let _turn = together();
    let name = unique("tab");
    let _running = Daemon::start(&name, &[]);
    assert_eq!(offers(&format!("heliostat stop {}", &name[..name.len() - 1])), [name.as_str()]);
    assert_eq!(offers(&format!("heliostat show circuits --name {name}")), [name.as_str()]);
    assert_eq!(offers(&format!("heliostat exec --name {name} h3-")), ["h3-0", "h3-1"]);
    assert_eq!(offers(&format!("heliostat exec --name {name} oc")), ["ocs0"]);
    assert_eq!(offers(&format!("heliostat capture --name {name} r2-")), ["r2-ocs0", "r2-eps"]);
    assert_eq!(offers(&format!("heliostat set --name {name} circuit r")), ["r0", "r1", "r2", "r3"]);
    assert_eq!(
        offers(&format!("heliostat set --name {name} circuits r3-")),
        ["r3-r0", "r3-r1", "r3-r2"]
    );
    // Bash makes words of what stands before and behind a colon.
    assert_eq!(offers(&format!("heliostat traffic --name {name} bulk h1-")), ["h1-0:", "h1-1:"]);
    assert_eq!(
        offers(&format!("heliostat traffic --name {name} bulk h0-0 : h1-")),
        ["h1-0", "h1-1"]
    );
    assert_eq!(
        offers("heliostat exec --name hx-none h0-"),
        Vec::<String>::new(),
        "a network that does not run has no hosts"
    );
}

/// What fish offers for the last of these words; `None` without fish.
fn fish_offers(words: &str) -> Option<Vec<String>> {
    let program = Path::new(env!("CARGO_BIN_EXE_heliostat"));
    let script = "heliostat completions fish | source; complete --do-complete $argv[1]";
    let path = format!(
        "{}:{}",
        program.parent().expect("a directory").display(),
        std::env::var("PATH").expect("a path")
    );
    let mut fish = std::process::Command::new("fish");
    fish.args(["--no-config", "-c", script, words])
        .env("PATH", path)
        .env_remove("HELIOSTAT_CONTROLLER")
        .current_dir(file(""));
    let o = fish.output().ok()?;
    assert!(o.status.success(), "{words}: {}", said(&o));
    // Behind a tab stands what it is.
    let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    Some(String::from_utf8(o.stdout).expect("text").lines().map(word).collect())
}

#[test]
fn fish_completes_commands_shipped_names_files_and_a_running_network() {
    let test = "fish_completes_commands_shipped_names_files_and_a_running_network";
    let Some(commands) = fish_offers("heliostat experi") else {
        return skip(test, "no fish");
    };
    let offers = |words: &str| fish_offers(words).expect("it was there");
    assert_eq!(commands, ["experiment"]);
    assert_eq!(offers("heliostat run hybrid-8"), ["hybrid-8x2"]);
    assert_eq!(offers("heliostat simulate hybrid-8x2 --policy sinc"), ["sincronia"]);
    assert_eq!(
        offers("heliostat simulate hybrid-8x2 --policy policies/sinc"),
        ["policies/sincronia.yaml"]
    );
    let shown = offers("heliostat show ");
    assert!(shown.contains(&"circuits".into()) && shown.contains(&"demand".into()), "{shown:?}");
    if !root(test) {
        return;
    }
    let _turn = together();
    let name = unique("fish");
    let _running = Daemon::start(&name, &[]);
    assert_eq!(offers(&format!("heliostat stop {}", &name[..name.len() - 1])), [name.as_str()]);
    assert_eq!(offers(&format!("heliostat exec --name {name} h3-")), ["h3-0", "h3-1"]);
    assert_eq!(offers(&format!("heliostat set --name {name} circuit r")), ["r0", "r1", "r2", "r3"]);
    // A pair is one word in fish.
    assert_eq!(offers(&format!("heliostat traffic --name {name} bulk h1-")), ["h1-0:", "h1-1:"]);
    assert_eq!(
        offers(&format!("heliostat traffic --name {name} bulk h0-0:h1-")),
        ["h0-0:h1-0", "h0-0:h1-1"]
    );
}
