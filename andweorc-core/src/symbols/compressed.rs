//! Sections that linkers have compressed, by zlib or Zstandard.
//!
//! The crate object could do it, with three crates more for the profiled program.

use object::{CompressionFormat, ObjectSection, Section};
use ruzstd::decoding::FrameDecoder;
use std::borrow::Cow;

/// The data of a section, decompressed where it must be. `None` where they are not of their form.
pub(super) fn data<'data>(section: &Section<'data, '_>) -> Option<Cow<'data, [u8]>> {
    let data = section.compressed_data().ok()?;
    match data.format {
        CompressionFormat::None => Some(Cow::Borrowed(data.data)),
        format => {
            let size = usize::try_from(data.uncompressed_size).ok()?;
            decompressed(format, data.data, size).map(Cow::Owned)
        }
    }
}

/// The data that were compressed, whose size the section tells.
fn decompressed(format: CompressionFormat, compressed: &[u8], size: usize) -> Option<Vec<u8>> {
    let data = match format {
        CompressionFormat::Zlib => {
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(compressed, size).ok()?
        }
        CompressionFormat::Zstandard => {
            let mut data = Vec::new();
            data.try_reserve_exact(size).ok()?;
            FrameDecoder::new().decode_all_to_vec(compressed, &mut data).ok()?;
            data
        }
        _ => return None,
    };
    (data.len() == size).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec_zlib;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    #[test]
    fn what_was_compressed_comes_back_only_whole() {
        let data: Vec<u8> = (0..100_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        for (format, compressed) in [
            (CompressionFormat::Zlib, compress_to_vec_zlib(&data, 6)),
            (CompressionFormat::Zstandard, compress_to_vec(&*data, CompressionLevel::Fastest)),
        ] {
            let of = |compressed: &[u8], size| decompressed(format, compressed, size);
            assert_eq!(of(&compressed, data.len()).as_ref(), Some(&data), "{format:?}");
            assert_eq!(of(&compressed, data.len() - 1), None, "{format:?}: longer than it says");
            assert_eq!(of(&compressed, data.len() + 1), None, "{format:?}: shorter than it says");
            assert_eq!(
                of(&compressed[..compressed.len() / 2], data.len()),
                None,
                "{format:?}: torn"
            );
            assert_eq!(of(&[0xff; 64], data.len()), None, "{format:?}: of another form");
        }
        assert_eq!(decompressed(CompressionFormat::Unknown, &[], 0), None);
    }
}
