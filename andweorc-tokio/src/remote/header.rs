//! The header that carries a stamp: version, number of the experiment, and delay in nanoseconds, as
//! `1;17;1234567`. What is not exactly so is no stamp.

use super::Stamp;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::io::Write;

/// Name of the header, or metadata entry, that carries a [`Stamp`].
pub const HEADER: HeaderName = HeaderName::from_static("andweorc-delay");

/// Version of the header's value. Increase it when you change what the value means: a reader takes
/// another version for no stamp.
const VERSION: &str = "1";

/// The greatest length of a value, in bytes.
const MAX_LENGTH: usize = 40;

impl Stamp {
    /// Returns the header's value. It takes one allocation.
    pub fn to_header(self) -> HeaderValue {
        let mut value = [0; MAX_LENGTH];
        let mut rest = &mut value[..];
        write!(rest, "{VERSION};{};{}", self.experiment(), self.delay_ns())
            .expect("a version of one byte and two numbers are 33 bytes at most");
        let length = MAX_LENGTH - rest.len();
        HeaderValue::from_bytes(&value[..length]).expect("digits and semicolons are visible")
    }

    /// Reads a header's value, any bytes. `None` of what [`to_header`](Stamp::to_header) would
    /// never write, or another version of it would.
    pub fn from_header(value: &[u8]) -> Option<Stamp> {
        if value.len() > MAX_LENGTH {
            return None;
        }
        let mut fields = value.split(|&byte| byte == b';');
        let (version, experiment, delay) = (fields.next()?, fields.next()?, fields.next()?);
        if version != VERSION.as_bytes() || fields.next().is_some() {
            return None;
        }
        let experiment = u32::try_from(number(experiment)?).ok()?;
        Stamp::new(experiment, number(delay)?)
    }

    /// The stamp of a message with these headers. `None` where it has none, or more than one.
    pub(super) fn of(headers: &HeaderMap) -> Option<Stamp> {
        let mut values = headers.get_all(&HEADER).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        Stamp::from_header(value.as_bytes())
    }
}

/// A decimal number without a sign and without leading zeros.
fn number(digits: &[u8]) -> Option<u64> {
    let is_short = matches!(digits, [b'0'] | [b'1'..=b'9', ..]);
    let append = |number: u64, &digit: &u8| {
        let value = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(value)
    };
    if is_short { digits.iter().try_fold(0, append) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn value_is_as_long_as_it_may_be_at_most() {
        let greatest = Stamp::new(u32::MAX, i64::MAX as u64).unwrap();
        let value = greatest.to_header();
        assert_eq!(value, "1;4294967295;9223372036854775807");
        assert!(value.len() <= MAX_LENGTH);
        assert_eq!(Stamp::from_header(value.as_bytes()), Some(greatest));
    }

    #[test]
    fn other_values_are_no_stamps() {
        let malformed = [
            "",
            ";",
            ";;",
            "1",
            "1;2",
            "1;2;",
            "1;;3",
            "1;2;3;",
            "1;2;3;4",
            "2;2;3",
            "01;2;3",
            "1;02;3",
            "1;2;03",
            "1;+2;3",
            "1;2;-3",
            "1; 2;3",
            "1;2;3 ",
            "1;2;3.5",
            "1;4294967296;3",
            "1;2;9223372036854775808",
            "1;2;18446744073709551616",
            "1;2;\u{663}",
            "1;2;00000000000000000000000000000000000000000000000000003",
        ];
        for value in malformed {
            assert_eq!(Stamp::from_header(value.as_bytes()), None, "{value:?}");
        }
    }

    #[test]
    fn two_headers_are_no_stamp() {
        let mut headers = HeaderMap::new();
        assert_eq!(Stamp::of(&headers), None);
        headers.append(HEADER, HeaderValue::from_static("1;2;3"));
        assert_eq!(Stamp::of(&headers), Stamp::new(2, 3));
        headers.append(HEADER, HeaderValue::from_static("1;2;4"));
        assert_eq!(Stamp::of(&headers), None);
    }

    proptest! {
        #[test]
        fn stamp_is_read_as_it_was_written(experiment: u32, delay in 0..=i64::MAX as u64) {
            let stamp = Stamp::new(experiment, delay).unwrap();
            prop_assert_eq!(Stamp::from_header(stamp.to_header().as_bytes()), Some(stamp));
        }

        #[test]
        fn what_is_read_would_be_written_alike(value in "[0-9;+-]{0,12}|1;[0-9]{1,11};[0-9]{1,20}") {
            if let Some(stamp) = Stamp::from_header(value.as_bytes()) {
                prop_assert_eq!(stamp.to_header(), value);
            }
        }

        #[test]
        fn any_bytes_are_read(value: Vec<u8>) {
            if let Some(stamp) = Stamp::from_header(&value) {
                prop_assert_eq!(stamp.to_header(), &value[..]);
            }
        }
    }
}
