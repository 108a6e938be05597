# Adds up what a test program printed, in cargo's form (with --show-output) or with lines PASS, FAIL and SKIP: passed, failed, skipped,
# and further tries. A test of cargo's that ended well and printed SKIP is skipped, not passed.
/^running [0-9]+ tests?$/ { part = "" }
/^successes:$/ { part = "successes" }
/^failures:$/ { part = "failures" }
/^---- .* stdout ----$/ { name = $2; said = 0 }
/^test result:/ { passed += $4; failed += $6; skipped += $8; part = "" }
/^PASS / { passed++ }
/^FAIL / { failed++ }
/^RETRY / { retried++ }
/^SKIP / {
    if (part == "successes" && !said) { passed--; skipped++; said = 1 }
    if (part == "") skipped++
}
END { print passed + 0, failed + 0, skipped + 0, retried + 0 }
