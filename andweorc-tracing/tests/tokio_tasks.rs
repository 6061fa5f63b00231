//! Tokio's spans and events about its tasks, with `--cfg tokio_unstable`, are for andweorc alone.
#![cfg(tokio_unstable)]

use andweorc_core::experiment::Experimenter;
use andweorc_core::unwrapped::{self, How, Spawned, Task, Tasks};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tracing::{Event, Level, Subscriber, info};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::prelude::*;

/// Counts of what is told of one task.
#[derive(Debug, Default)]
struct Told {
    entered: AtomicU32,
    left: AtomicU32,
    woken: AtomicU32,
}

impl Task for Told {
    fn enter(self: Arc<Self>) {
        self.entered.fetch_add(1, SeqCst);
    }

    fn exit(self: Arc<Self>) {
        self.left.fetch_add(1, SeqCst);
    }

    fn wake(&self) {
        self.woken.fetch_add(1, SeqCst);
    }
}

/// A task: its name, what runs it, its spawn site.
type One = (String, How, String, Arc<Told>);

/// Remembers the tasks.
#[derive(Debug)]
struct Listener(Mutex<Vec<One>>);

/// How many wakers were cloned.
static CLONED: AtomicU32 = AtomicU32::new(0);

static LISTENER: Listener = Listener(Mutex::new(Vec::new()));

impl Tasks for Listener {
    fn is_wrapped(&self) -> bool {
        false
    }

    fn waker_cloned(&self) {
        CLONED.fetch_add(1, SeqCst);
    }

    fn spawned(&self, spawned: Spawned<'_>) -> Option<Arc<dyn Task>> {
        let told = Arc::new(Told::default());
        let Spawned { name, how, file, line, .. } = spawned;
        let site = format!("{file}:{line}");
        self.0.lock().unwrap().push((name.to_owned(), how, site, Arc::clone(&told)));
        Some(told)
    }
}

/// Collects the events that get to a layer.
#[derive(Clone, Default)]
struct Collect(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> tracing_subscriber::Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        self.0.lock().unwrap().push(format!("{} {}", metadata.level(), metadata.target()));
    }
}

#[test]
fn tasks_are_told_of_and_other_layers_get_what_they_get_without() {
    let on = Experimenter::new().expect("the only one in this process");
    unwrapped::install(&LISTENER);
    let [all, infos, warnings] = [(); 3].map(|()| Collect::default());
    tracing_subscriber::registry()
        .with(infos.clone().with_filter(LevelFilter::INFO))
        .with(all.clone())
        .with(andweorc_tracing::layer())
        .with(warnings.clone().with_filter(LevelFilter::WARN))
        .init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let site = runtime.block_on(async {
        let receives = async move {
            for _ in 0..100 {
                receiver.recv().await.unwrap();
                info!("received");
            }
        };
        let task = tokio::task::Builder::new().name("receives").spawn(receives).unwrap();
        for _ in 0..100 {
            sender.send(()).await.unwrap();
        }
        task.await.unwrap();
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        format!("{}:{}", file!(), line!() - 1)
    });
    drop(on);
    runtime.block_on(async {
        let later = tokio::task::Builder::new().name("later").spawn(tokio::task::yield_now());
        later.unwrap().await.unwrap();
    });
    drop(runtime);

    let tasks = LISTENER.0.lock().unwrap();
    let (_, how, _, told) = tasks.iter().find(|(name, ..)| name == "receives").unwrap();
    let [entered, left, woken] = [&told.entered, &told.left, &told.woken].map(|it| it.load(SeqCst));
    assert_eq!(*how, How::Worker);
    // The first wait leaves a waker in the channel.
    assert!(CLONED.load(SeqCst) > 0);
    assert!((1..=100).contains(&woken), "{woken} wakes");
    // The first poll, one for each wake, and the drop of the future; a wake may be for nothing.
    assert!(entered == left && (3..=woken + 2).contains(&entered), "{entered}, {left}, {woken}");
    assert!(tasks.iter().any(|(_, how, at, _)| *how == How::Blocking && *at == site), "{tasks:?}");
    assert!(tasks.iter().any(|(_, how, ..)| *how == How::Root));
    // When it is off again what becomes of tasks goes on to be told: else nobody could say what
    // they are when it is on once more.
    let (.., told) = tasks.iter().find(|(name, ..)| name == "later").unwrap();
    assert!(told.entered.load(SeqCst) >= 2 && told.woken.load(SeqCst) > 0, "{told:?}");

    let received = vec![format!("{} tokio_tasks", Level::INFO); 100];
    // Others of tokio's events do get to a layer without a filter.
    all.0.lock().unwrap().retain(|event| !event.contains("runtime::resource"));
    assert_eq!(*all.0.lock().unwrap(), received);
    assert_eq!(*infos.0.lock().unwrap(), received);
    assert!(warnings.0.lock().unwrap().is_empty());
}
