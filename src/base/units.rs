//! Physical quantities as integer types: [`Bytes`], [`BitRate`], [`Time`] and [`Span`].
//!
//! All four are `u64` inside, so that runs are exact and repeat byte for byte; floating point
//! appears in reports only. Each prints with a unit (`12.5MB`, `1Gb/s`, `10ms`) and reads both a
//! bare integer (in its base unit) and a string with a unit. Prefixes are decimal, as network
//! equipment counts: 1 kB = 1000 bytes, 1 Gb/s = 10^9 bits/s.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// One nanosecond is the resolution of every clock in Heliostat.
pub const NANOS: u64 = 1_000_000_000;

/// An amount of data in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A data rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(pub u64);

/// An instant, in nanoseconds since the run's epoch (the same grammar for wall time and for virtual
/// time).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}; {hint}")]
pub struct ParseUnitError {
    text: String,
    what: &'static str,
    hint: String,
}

impl Bytes {
    /// No data.
    pub const ZERO: Self = Self(0);

    /// Adds without overflow: the sum stops at `u64::MAX`.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Subtracts; nothing goes below zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl BitRate {
    /// No capacity.
    pub const ZERO: Self = Self(0);

    /// `mbit` megabits per second.
    pub const fn mbit(mbit: u64) -> Self {
        Self(mbit * 1_000_000)
    }

    /// The time that `bytes` take at this rate, rounded up; `Span::MAX` at rate zero.
    pub fn time_for(self, bytes: Bytes) -> Span {
        if bytes.0 == 0 {
            return Span::ZERO;
        }
        if self.0 == 0 {
            return Span::MAX;
        }
        // Division of 64 bits is several times as fast as that of 128.
        if let Some(bits) = bytes.0.checked_mul(8 * NANOS) {
            return Span(bits.div_ceil(self.0));
        }
        let ns = (u128::from(bytes.0) * 8 * u128::from(NANOS)).div_ceil(u128::from(self.0));
        Span(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// The whole bytes that pass at this rate within `span`, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        if let Some(bits) = self.0.checked_mul(span.0) {
            return Bytes(bits / (8 * NANOS));
        }
        let b = u128::from(self.0) * u128::from(span.0) / (8 * u128::from(NANOS));
        Bytes(u64::try_from(b).unwrap_or(u64::MAX))
    }

    /// This rate in whole bytes per second, rounded down (what `tc` counts in).
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }
}

impl Time {
    /// The run's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than everything: an open end.
    pub const MAX: Self = Self(u64::MAX);

    /// The span from `earlier` to this instant; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `span` earlier, but never before the epoch.
    #[must_use]
    pub fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than every run.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// `n` seconds.
    pub const fn secs(n: u64) -> Self {
        Self(n * NANOS)
    }
    /// In seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// In milliseconds, for reports.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In microseconds, for reports.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// The same length as the standard library's type.
    pub const fn std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
    /// Subtracts; nothing goes below zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<std::time::Duration> for Span {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, s: Span) -> Self {
        Self(self.0.saturating_add(s.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, s: Span) {
        *self = *self + s;
    }
}
impl Add for Span {
    type Output = Self;
    fn add(self, s: Self) -> Self {
        Self(self.0.saturating_add(s.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, s: Self) {
        *self = *self + s;
    }
}
impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}
impl Add for Bytes {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        Self(self.0.checked_add(b.0).expect("byte counts fit in 64 bits"))
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, b: Self) {
        *self = *self + b;
    }
}
impl Sub for Bytes {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        Self(self.0.checked_sub(b.0).expect("no negative byte count"))
    }
}
impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(it: I) -> Self {
        it.fold(Self::ZERO, Self::saturating_add)
    }
}

/// (suffix, factor), largest first: printing takes the first whose factor divides into a short
/// number.
const BYTE_UNITS: &[(&str, u64)] =
    &[("TB", 1_000_000_000_000), ("GB", NANOS), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
const RATE_UNITS: &[(&str, u64)] = &[
    ("Tb/s", 1_000_000_000_000),
    ("Gb/s", NANOS),
    ("Mb/s", 1_000_000),
    ("kb/s", 1_000),
    ("b/s", 1),
];
const SPAN_UNITS: &[(&str, u64)] = &[("s", NANOS), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const SPAN_LONG: &[(&str, u64)] = &[("h", 3_600 * NANOS), ("min", 60 * NANOS)];

fn show(f: &mut fmt::Formatter<'_>, v: u64, units: &[(&str, u64)]) -> fmt::Result {
    let &(unit, k) = units.iter().find(|u| v >= u.1).unwrap_or(&units[units.len() - 1]);
    let text = if v.is_multiple_of(k) {
        format!("{}{unit}", v / k)
    } else {
        let x = v as f64 / k as f64;
        let s = format!("{x:.3}");
        format!("{}{unit}", s.trim_end_matches('0').trim_end_matches('.'))
    };
    f.pad(&text)
}

fn parse(
    text: &str,
    units: &[(&str, u64)],
    what: &'static str,
    example: &'static str,
) -> Result<u64, ParseUnitError> {
    let bad = || ParseUnitError {
        text: text.chars().take(40).collect(),
        what,
        hint: hint(text, units, example),
    };
    let t = text.trim();
    let split = t.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(t.len());
    let (number, unit) = (&t[..split], t[split..].trim());
    let k = units.iter().find(|u| u.0 == unit).ok_or_else(bad)?.1;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.len() > 12 || (number.contains('.') && part.is_empty()) {
        return Err(bad());
    }
    let whole: u128 = whole.parse().map_err(|_| bad())?;
    let scale = 10u128.pow(part.len() as u32);
    let part: u128 = if part.is_empty() { 0 } else { part.parse().map_err(|_| bad())? };
    let total = whole
        .checked_mul(scale)
        .and_then(|w| w.checked_add(part))
        .and_then(|w| w.checked_mul(u128::from(k)));
    total.map(|v| v / scale).and_then(|v| u64::try_from(v).ok()).ok_or_else(bad)
}

/// The unit that was meant where a text has the unit of another tool, and which units there are.
fn hint(text: &str, units: &[(&str, u64)], example: &str) -> String {
    let t = text.trim();
    let (number, unit) =
        t.split_at(t.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(t.len()));
    let all: Vec<&str> = units.iter().map(|u| u.0).collect();
    match meant(unit.trim(), units) {
        Some(unit) if !number.is_empty() => {
            format!("did you mean {number}{unit}? Units: {}", all.join(", "))
        }
        _ => format!("write a number and a unit, such as {example}; units: {}", all.join(", ")),
    }
}

/// The unit that was meant, of those that there are.
fn meant<'a>(unit: &str, units: &[(&'a str, u64)]) -> Option<&'a str> {
    let plain = unit.to_lowercase();
    let known = |name: &str| units.iter().map(|u| u.0).find(|u| u.to_lowercase() == name);
    // Bytes are not bits, whatever their letters: nothing is guessed between the two.
    let of_bytes = units.iter().any(|u| u.0 == "B");
    if unit.ends_with("B/s") || unit.ends_with("Bps") || (of_bytes && unit.ends_with('b')) {
        return None;
    }
    let rate = ["bit/s", "bits/s", "bps", "bit", "b"]
        .iter()
        .find_map(|end| known(&format!("{}b/s", plain.strip_suffix(end)?)));
    let bytes = ["bytes", "byte", "ib"]
        .iter()
        .find_map(|end| known(&format!("{}b", plain.strip_suffix(end)?)));
    let time =
        ["econds", "econd", "ecs", "ec"].iter().find_map(|end| known(plain.strip_suffix(end)?));
    known(&plain).or(rate).or(bytes).or(time)
}

macro_rules! quantity {
    ($t:ident, $units:expr, $also:expr, $what:expr, $example:expr) => {
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show(f, self.0, $units)
            }
        }
        impl Quantity for $t {
            fn exact(&self) -> String {
                let text = self.to_string();
                let base = $units[$units.len() - 1].0;
                if text.parse::<Self>().as_ref() == Ok(self) { text } else { format!("{}{base}", self.0) }
            }
        }
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl FromStr for $t {
            type Err = ParseUnitError;
            fn from_str(s: &str) -> Result<Self, ParseUnitError> {
                let units: Vec<(&str, u64)> = $units.iter().chain($also).copied().collect();
                parse(s, &units, $what, $example).map(Self)
            }
        }
        #[cfg(feature = "serde")]
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_u64(self.0)
            }
        }
        #[cfg(feature = "serde")]
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl de::Visitor<'_> for V {
                    type Value = $t;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} such as {}", $what, $example)
                    }
                    fn visit_u64<E: de::Error>(self, v: u64) -> Result<$t, E> {
                        Ok($t(v))
                    }
                    fn visit_i64<E: de::Error>(self, v: i64) -> Result<$t, E> {
                        u64::try_from(v).map($t).map_err(|_| E::invalid_value(de::Unexpected::Signed(v), &self))
                    }
                    fn visit_str<E: de::Error>(self, v: &str) -> Result<$t, E> {
                        v.parse().map_err(E::custom)
                    }
                }
                d.deserialize_any(V)
            }
        }
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $t {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($t).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": concat!($what, " with its unit, such as ", $example, "; 0 needs none"),
                    "oneOf": [{"const": 0}, {"type": "string"}]
                })
            }
        }
    };
}
quantity!(Bytes, BYTE_UNITS, &[], "an amount of data", "\"1.125GB\"");
quantity!(BitRate, RATE_UNITS, &[], "a data rate", "\"1Gb/s\"");
quantity!(Span, SPAN_UNITS, SPAN_LONG, "a length of time", "\"100ms\"");

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            f.pad("-")
        } else {
            f.pad(&format!("{:.6}s", self.0 as f64 / NANOS as f64))
        }
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What has a value and a unit.
pub trait Quantity {
    /// As a text that reads back as the same value: with the largest unit if it is short, else in
    /// the base unit.
    fn exact(&self) -> String;
}

#[cfg(feature = "serde")]
/// Writes a quantity as a text that reads back as the same value.
///
/// # Errors
/// Those of the serializer.
pub fn exact<T: Quantity, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&value.exact())
}

#[cfg(feature = "serde")]
/// [`exact`] for a quantity that may be absent.
///
/// # Errors
/// Those of the serializer.
pub fn exact_or_null<T: Quantity, S: Serializer>(
    value: &Option<T>,
    s: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(v) => exact(v, s),
        None => s.serialize_none(),
    }
}

/// Whether a number is zero, so that a file need not have it.
pub fn is_zero<T: Default + PartialEq>(n: &T) -> bool {
    *n == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_prints_units() {
        assert_eq!("1.125GB".parse(), Ok(Bytes(1_125_000_000)));
        assert_eq!("2.5Gb/s".parse(), Ok(BitRate(2_500_000_000)));
        assert_eq!("10 ms".parse(), Ok(Span::millis(10)));
        assert_eq!("2min".parse(), Ok(Span::secs(120)));
        assert_eq!(BitRate(2_500_000_000).to_string(), "2.5Gb/s");
        assert_eq!(Span::micros(20).to_string(), "20us");
        for bad in ["", "ms", "1", "1.", ".5s", "-1s", "1Gb", "1e3s", "99999999999999999999s"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn units_as_others_write_them_get_a_hint() {
        let rate = |text: &str| text.parse::<BitRate>().unwrap_err().to_string();
        assert_eq!(
            rate("100Mbps"),
            "`100Mbps` is not a data rate; did you mean 100Mb/s? Units: Tb/s, Gb/s, Mb/s, kb/s, b/s"
        );
        for (text, meant) in [
            ("1Gbit/s", "1Gb/s"),
            ("1 gbit", "1Gb/s"),
            ("2.5GBIT/S", "2.5Gb/s"),
            ("10Gb", "10Gb/s"),
            ("5Kb/s", "5kb/s"),
        ] {
            assert!(rate(text).contains(&format!("did you mean {meant}?")), "{}", rate(text));
        }
        // 1 MB/s is 8 Mb/s: nothing is guessed.
        assert!(
            ["1MB/s", "1GBps", "", "x", "7"]
                .iter()
                .all(|text| rate(text).contains("write a number and a unit, such as"))
        );
        let other = |text: &str| {
            (
                text.parse::<Bytes>().unwrap_err().to_string(),
                text.parse::<Span>().unwrap_err().to_string(),
            )
        };
        assert!(
            other("64KB").0.contains("64kB?")
                && other("1MiB").0.contains("1MB?")
                && other("3 bytes").0.contains("3B?")
        );
        assert!(other("1Mb").0.contains("write a number"), "a megabit is no megabyte");
        assert!(
            other("10sec").1.contains("10s?")
                && other("10msec").1.contains("10ms?")
                && other("1S").1.contains("1s?")
        );
    }

    #[test]
    fn exact_texts_read_back() {
        for (span, text) in [
            (Span(1_234_567_891), "1234567891ns"),
            (Span::millis(1500), "1.5s"),
            (Span::ZERO, "0ns"),
        ] {
            assert_eq!((span.exact(), text.parse()), (text.to_owned(), Ok(span)));
        }
        assert_eq!(
            (Bytes(1_234_567_891).exact(), BitRate(999_999_999_999).exact()),
            ("1234567891B".into(), "999999999999b/s".into())
        );
    }

    #[test]
    fn time_and_bytes_are_inverse_at_whole_values() {
        let r = BitRate::mbit(1000);
        assert_eq!(r.time_for(Bytes(125)), Span(1000));
        assert_eq!(r.bytes_in(Span(1000)), Bytes(125));
        assert_eq!(BitRate::ZERO.time_for(Bytes(1)), Span::MAX);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn divisions_of_64_and_of_128_bits_agree(rate in 1u64..=u64::MAX, top in 0u32..64, x: u64) {
            let x = x >> top;
            let (rate, wide) = (BitRate(rate >> (top / 2)), u128::from(x));
            prop_assume!(rate.0 > 0);
            let capped = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
            prop_assert_eq!(rate.time_for(Bytes(x)).0, capped((wide * 8 * u128::from(NANOS)).div_ceil(rate.0.into())));
            prop_assert_eq!(rate.bytes_in(Span(x)).0, capped(wide * u128::from(rate.0) / (8 * u128::from(NANOS))));
        }

        #[test]
        fn parsing_never_panics(s in ".{0,40}") {
            let _ = s.parse::<Bytes>();
            let _ = s.parse::<BitRate>();
            let _ = s.parse::<Span>();
        }

        #[test]
        fn time_for_covers_the_bytes(rate in 1u64..1 << 40, b in 0u64..1 << 50) {
            let t = BitRate(rate).time_for(Bytes(b));
            prop_assume!(t != Span::MAX);
            prop_assert!(BitRate(rate).bytes_in(t).0 >= b);
        }
    }
}
