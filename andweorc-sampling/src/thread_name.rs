//! Names of threads.

use std::fmt;

/// The name of a thread as the kernel knows it, cut to 15 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadName([u8; 16]);

impl ThreadName {
    /// The name of the calling thread, which is that of the program where it has no other.
    pub fn own() -> ThreadName {
        let mut name = ThreadName::default();
        // SAFETY: this call writes a name of 16 bytes at most to its second argument, the zero at
        // the end included, and reads no other.
        let told = unsafe { libc::prctl(libc::PR_GET_NAME, name.0.as_mut_ptr()) };
        if told == 0 { name } else { ThreadName::default() }
    }

    /// The name as two words.
    pub fn words(self) -> [u64; 2] {
        let (words, _) = self.0.as_chunks();
        [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
    }

    /// The name that has these [words](ThreadName::words).
    pub fn of_words(words: [u64; 2]) -> ThreadName {
        let mut name = ThreadName::default();
        let (bytes, _) = name.0.as_chunks_mut();
        [bytes[0], bytes[1]] = words.map(u64::to_ne_bytes);
        name
    }
}

impl From<&[u8]> for ThreadName {
    /// Cuts what is longer.
    fn from(bytes: &[u8]) -> ThreadName {
        let mut name = ThreadName::default();
        name.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        name
    }
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_survives_its_words() {
        for name in ["", "a", "tokio-rt-worker", "sixteen bytes ..", "more than sixteen bytes"] {
            let cut = &name[..name.len().min(16)];
            let name = ThreadName::from(name.as_bytes());
            assert_eq!(ThreadName::of_words(name.words()), name);
            assert_eq!(name.to_string(), cut);
        }
    }

    #[test]
    fn thread_has_the_name_that_it_was_given() {
        let named = std::thread::Builder::new().name("shop-worker".to_owned());
        let name = named.spawn(ThreadName::own).unwrap().join().unwrap();
        assert_eq!(name.to_string(), "shop-worker");
    }
}
