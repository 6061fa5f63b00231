//! Delays travel with messages between services that are profiled together.
//!
//! In an experiment over several services each process delays its own work. A message between two
//! of them carries the delay that its sender had taken, a [`Stamp`], so that the receiver can tell
//! when the message arrived in virtual time. A message without one is of the world outside.
//!
//! # What carries it
//!
//! - [`server`] is a tower layer for services that are called. It takes in the stamp of a request,
//!   and stamps the response to a request that had one.
//! - [`client`] is a tower layer for clients. It stamps requests to the hosts that it is given, and
//!   takes in the stamps of their responses.
//! - [`stamp`] and [`received`] are for protocols of one's own.
//!
//! The stamp of an HTTP or gRPC message is in the header [`HEADER`].
//!
//! # Who gets a header
//!
//! A client sends the header to the hosts that it is given, and a server answers with it only who
//! has sent one. No other message carries it, and none does outside of an experiment. A client that
//! learnt by itself who takes part would have to ask hosts that do not.
//!
//! # Between the socket and the header
//!
//! Nobody knows the stamp of a message before its header is read, so what waits for a message of a
//! participant must not be held at the socket as if the world outside ended its wait:
//!
//! - The part of a task that waits for an answer to a stamped request is profiled by itself, as a
//!   task of the host's name. It goes on at once as the answer comes. Then the answer's header
//!   tells until when it is held. An answer without a stamp is held as one of the world outside.
//! - A connection of a server whose stream is [`Outside`](crate::io::Outside) is marked by each
//!   request that it brings in an experiment, as one of a participant or not. The next request
//!   waits for its header accordingly, so that a change is told one request late.
//! - Connections that a client library spawns are not profiled on stable tokio, and hold nothing.

mod client;
mod header;
mod hold;
mod server;
mod stamp;

pub use client::{Answered, Call, ClientLayer, ClientService, client, client_of};
pub use header::HEADER;
pub use server::{ServerFuture, ServerLayer, ServerService, server};
pub use stamp::{Received, Stamp, received, stamp};
