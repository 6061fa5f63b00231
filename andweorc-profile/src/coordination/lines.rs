//! Messages as lines of JSON, read from any bytes.

use super::{LONGEST_MESSAGE, Message};
use std::{error, fmt};

/// Reads messages from bytes as they come. It keeps [`LONGEST_MESSAGE`] bytes and what was fed last
/// at most.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// So many of the bytes are known to have no end of a line.
    searched: usize,
}

impl Lines {
    /// Takes in bytes. [`next_message`](Lines::next_message) is called until it returns `None`
    /// before more are fed.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message; `None` until its line is whole. After an error the connection is
    /// of no more use.
    pub fn next_message<M: Message>(&mut self) -> Option<Result<M, MessageError>> {
        let end = self.bytes[self.searched..].iter().position(|&byte| byte == b'\n');
        let Some(end) = end.map(|at| self.searched + at) else {
            self.searched = self.bytes.len();
            return (self.bytes.len() > LONGEST_MESSAGE).then_some(Err(MessageError::TooLong));
        };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        self.searched = 0;
        if end > LONGEST_MESSAGE {
            return Some(Err(MessageError::TooLong));
        }
        let message = serde_json::from_slice::<M>(&line[..end]);
        let message = message.map_err(|error| MessageError::Malformed(error.to_string()));
        Some(message.and_then(|message| message.check().map(|()| message)))
    }
}

/// The line of a message, with its newline.
///
/// # Panics
///
/// Never: a message has neither maps with odd keys nor numbers that JSON lacks.
pub fn to_line(message: &impl Message) -> String {
    let mut line = serde_json::to_string(message).expect("a message is valid JSON");
    line.push('\n');
    line
}

/// A message that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// The line is longer than [`LONGEST_MESSAGE`].
    TooLong,
    /// The line is no message. Holds why.
    Malformed(String),
    /// A text is longer than [`LONGEST_TEXT`](super::LONGEST_TEXT).
    LongText,
    /// There are more targets or points than [`MOST_NAMED`](super::MOST_NAMED).
    TooMany,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::TooLong => write!(f, "a message of more than {LONGEST_MESSAGE} bytes"),
            MessageError::Malformed(why) => write!(f, "no message of the protocol: {why}"),
            MessageError::LongText => f.write_str("a message with too long a text"),
            MessageError::TooMany => f.write_str("a message with too many targets or points"),
        }
    }
}

impl error::Error for MessageError {}
