//! The allocator of the system.
