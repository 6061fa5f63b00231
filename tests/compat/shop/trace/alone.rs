//! andweorc's own subscriber.

pub fn init() {
    andweorc::subscriber().init();
}

pub fn event() {}
