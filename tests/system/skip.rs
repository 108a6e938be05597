//! The line of a test that cannot run here.

/// Tells that a test does not run here as `SKIP name: why`. With `REQUIRE_KERNEL=1`, where the
/// machine is known to have all that the tests of the kernel need, this is a failure.
pub fn skip(name: &str, why: &str) {
    assert!(
        std::env::var_os("REQUIRE_KERNEL").is_none_or(|v| v != "1"),
        "{name} cannot run ({why}), and REQUIRE_KERNEL=1 forbids to skip it"
    );
    println!("SKIP {name}: {why}");
}
