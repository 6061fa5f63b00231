//! The layer in a process where andweorc is off. One test, since switching on is for the whole process and for good.

use andweorc_core::experiment::Experimenter;
use andweorc_core::point::points;
use andweorc_core::target::targets;
use andweorc_tracing::layer;
use tracing::subscriber::with_default;
use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

#[test]
fn nothing_is_recorded_until_it_is_switched_on() {
    with_default(tracing_subscriber::registry().with(layer()), || {
        let open = info_span!("open");
        for _ in 0..2 {
            let _span = info_span!("off").entered();
            info!(name: "event_off", "off");
        }
        assert!(points().is_empty(), "{:?}", points());
        assert!(targets().is_empty(), "{:?}", targets());

        let entered = open.enter();
        let _on = Experimenter::new().expect("the only one in this process");
        drop(entered);
        drop(open);
        assert!(points().is_empty(), "a span that was open is left out: {:?}", points());
        drop(info_span!("on").entered());
    });
    assert_eq!(points().iter().map(|point| point.name()).collect::<Vec<_>>(), ["on"]);
    assert_eq!(targets().iter().map(|target| target.name()).collect::<Vec<_>>(), ["on"]);
}
