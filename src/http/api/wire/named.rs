//! Racks, planes, hosts and quantities in requests: names and units as in files, or plain numbers.
//! Answers have numbers, one type for each key.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{
    KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{PartialSchema, ToSchema, openapi};

use crate::ids::HostId;
use crate::topology::Topology;
use crate::units::{Bytes, ParseUnitError, Quantity as _, Span};

/// What a text of a request stands for.
pub trait Named: Sized {
    /// What may be written, for errors.
    const ALLOWED: &'static str;
    /// Of a number.
    fn number(n: u64) -> Option<Self>;
    /// Of a text.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    fn text(text: &str) -> Result<Self, String>;
}

struct Either<T>(std::marker::PhantomData<T>);

impl<T: Named> Visitor<'_> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::ALLOWED)
    }
    fn visit_u64<E: de::Error>(self, n: u64) -> Result<T, E> {
        T::number(n).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(n), &self))
    }
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
        u64::try_from(n)
            .ok()
            .and_then(T::number)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(n), &self))
    }
    fn visit_f64<E: de::Error>(self, x: f64) -> Result<T, E> {
        // JSON knows one kind of number: 5.0 is 5, as the description of the API says of whole
        // numbers.
        let whole = (x.fract() == 0.0 && (0.0..18e18).contains(&x)).then_some(x as u64);
        whole.and_then(T::number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(x), &self))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::text(text).map_err(E::custom)
    }
}

fn either<'de, T: Named, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    d.deserialize_any(Either(std::marker::PhantomData))
}

/// The number of an object that is called by a letter and its number.
fn lettered(text: &str, letter: char, what: &str) -> Result<u32, String> {
    let number = text.strip_prefix(letter).unwrap_or(text);
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let found = plain.then(|| number.parse().ok()).flatten();
    found.ok_or_else(|| {
        format!(
            "`{}` is no {what}; allowed: a name such as {letter}0, or its number",
            text.escape_debug()
        )
    })
}

macro_rules! request_type {
    ($(#[$doc:meta])* $t:ident($inner:ty), $schema:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
        pub struct $t(pub $inner);

        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                either(d)
            }
        }
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(s)
            }
        }
        impl PartialSchema for $t {
            fn schema() -> openapi::RefOr<Schema> {
                let (format, about, pattern) = $schema;
                two_forms(format, about, pattern)
            }
        }
        impl ToSchema for $t {
            fn name() -> Cow<'static, str> {
                stringify!($t).into()
            }
        }
    };
}

const AMOUNT: &str = r"^[0-9]{1,6}(\.[0-9]{1,6})? ?(B|kB|MB|GB|TB)$";
const LENGTH: &str = r"^[0-9]{1,6}(\.[0-9]{1,6})? ?(ns|us|ms|s|min|h)$";

request_type!(
    /// A rack of a request: `r3`, or 3.
    RackRef(u32),
    (KnownFormat::UInt32, "A rack, by name (`r3`) or number", "^r?[0-9]{1,9}$")
);
request_type!(
    /// A plane of a request: `p0`, or 0.
    PlaneRef(u32),
    (KnownFormat::UInt32, "An OCS plane, by name (`p0`) or number", "^p?[0-9]{1,9}$")
);
request_type!(
    /// An amount of data of a request: `\"5MB\"`, or a number of bytes.
    Amount(u64),
    (KnownFormat::UInt64, "An amount of data: a number of bytes, or one with its unit (`\"5MB\"`)", AMOUNT)
);
request_type!(
    /// A length of time of a request: `\"200ms\"`, or a number of nanoseconds.
    Length(u64),
    (KnownFormat::UInt64, "A length of time: a number of nanoseconds, or one with its unit (`\"200ms\"`)", LENGTH)
);

impl Named for RackRef {
    const ALLOWED: &'static str = "a rack: a name such as r0, or its number";
    fn number(n: u64) -> Option<Self> {
        n.try_into().ok().map(Self)
    }
    fn text(text: &str) -> Result<Self, String> {
        lettered(text, 'r', "rack").map(Self)
    }
}

impl Named for PlaneRef {
    const ALLOWED: &'static str = "a plane: a name such as p0, or its number";
    fn number(n: u64) -> Option<Self> {
        n.try_into().ok().map(Self)
    }
    fn text(text: &str) -> Result<Self, String> {
        lettered(text, 'p', "plane").map(Self)
    }
}

/// A quantity: digits alone are in the base unit, as the number would be.
fn quantity<T: FromStr<Err = ParseUnitError>>(
    text: &str,
    of: impl Fn(u64) -> T,
) -> Result<T, String> {
    match text.parse() {
        Ok(n) => Ok(of(n)),
        Err(_) => text.parse::<T>().map_err(|e| e.to_string()),
    }
}

impl Named for Amount {
    const ALLOWED: &'static str = "a number of bytes, or an amount with its unit such as \"5MB\"";
    fn number(n: u64) -> Option<Self> {
        Some(Self(n))
    }
    fn text(text: &str) -> Result<Self, String> {
        quantity(text, Bytes).map(|b| Self(b.0))
    }
}

impl Named for Length {
    const ALLOWED: &'static str =
        "a number of nanoseconds, or a time with its unit such as \"200ms\"";
    fn number(n: u64) -> Option<Self> {
        Some(Self(n))
    }
    fn text(text: &str) -> Result<Self, String> {
        quantity(text, Span).map(|s| Self(s.0))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Span(self.0).exact())
    }
}

/// The schema of a number or a text.
fn two_forms(format: KnownFormat, about: &str, pattern: &str) -> openapi::RefOr<Schema> {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(format)))
        .minimum(Some(0));
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
    OneOfBuilder::new().description(Some(about)).item(number).item(text).into()
}

/// A host of a request: `h1-0`, or its number over the whole network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRef {
    /// Its number.
    Number(u32),
    /// Its rack, and its place there.
    Name(u32, u32),
}

impl HostRef {
    /// The host of this network.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn find(self, topology: &Topology) -> Result<HostId, String> {
        let n = topology.hosts.len();
        let (name, found) = match self {
            Self::Number(k) => (k.to_string(), ((k as usize) < n).then_some(HostId(k))),
            Self::Name(rack, k) => {
                (format!("h{rack}-{k}"), topology.host_by_name(&format!("h{rack}-{k}")))
            }
        };
        let last = topology.hosts.last().map(|h| topology.host_name(h.id));
        let those = || {
            last.map_or("there is none".into(), |last| {
                format!("they are 0 to {}, or h0-0 to {last}", n - 1)
            })
        };
        found.ok_or_else(|| format!("no host {name}: {}", those()))
    }
}

impl Named for HostRef {
    const ALLOWED: &'static str = "a host: a name such as h0-0, or its number";
    fn number(n: u64) -> Option<Self> {
        n.try_into().ok().map(Self::Number)
    }
    fn text(text: &str) -> Result<Self, String> {
        let by_name = || {
            let (rack, k) = text.strip_prefix('h')?.split_once('-')?;
            Some(Self::Name(rack.parse().ok()?, k.parse().ok()?))
        };
        let found = by_name().or_else(|| text.parse().ok().map(Self::Number));
        found.ok_or_else(|| {
            format!(
                "`{}` is no host; allowed: a name such as h0-0, or its number",
                text.escape_debug()
            )
        })
    }
}

impl<'de> Deserialize<'de> for HostRef {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        either(d)
    }
}

impl Serialize for HostRef {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(n) => n.serialize(s),
            Self::Name(rack, k) => s.collect_str(&format_args!("h{rack}-{k}")),
        }
    }
}

impl PartialSchema for HostRef {
    fn schema() -> openapi::RefOr<Schema> {
        two_forms(
            KnownFormat::UInt32,
            "A host, by name (`h1-0`) or number",
            "^(h[0-9]{1,9}-[0-9]{1,9}|[0-9]{1,9})$",
        )
    }
}

impl ToSchema for HostRef {
    fn name() -> Cow<'static, str> {
        "HostRef".into()
    }
}
