//! Any bytes, read as the header of a message that carries a delay. Another service sent it.
#![no_main]

use andweorc_tokio::remote::Stamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(stamp) = Stamp::from_header(bytes) {
        assert_eq!(stamp.to_header(), bytes, "there is one way to write a stamp");
    }
    if let Ok(bytes) = bytes.try_into()
        && let Some(stamp) = Stamp::from_bytes(bytes)
    {
        assert_eq!(stamp.to_bytes(), bytes, "there is one way to write a stamp");
    }
});
