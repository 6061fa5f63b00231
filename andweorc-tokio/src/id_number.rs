//! The number that an id of tokio's consists of, which its type keeps to itself.

use std::hash::{Hash, Hasher};

/// The number of `id`. `None` of what is no number.
pub(crate) fn number_of(id: impl Hash) -> Option<u64> {
    let mut number = Number(None);
    id.hash(&mut number);
    number.0
}

/// Keeps what is hashed.
struct Number(Option<u64>);

impl Hasher for Number {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = Some((self.0.unwrap_or(0) << 8) | u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = Some(number);
    }

    fn finish(&self) -> u64 {
        self.0.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_is_known_by_its_number() {
        let shown =
            tokio::spawn(async { (number_of(tokio::task::id()), tokio::task::id().to_string()) });
        let (number, shown) = shown.await.unwrap();
        assert_eq!(number.unwrap().to_string(), shown);
        assert_eq!(number_of(()), None);
    }
}
