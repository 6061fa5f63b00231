//! Users can name all that functions of the facade take and return, that fields hold and that
//! errors are made of.

use andweorc::analysis::{
    Analysis, Effect, ExperimentRecord, Impact, Judged, Load, Metric, Now, PointCount, PointKind,
    PointRecord, PointSummary, Probes, Ranking, TargetKind, TargetRecord, TargetSummary, Verdict,
    WaitSummary, WaitTime,
};
use andweorc::runner::{Place, ProfilingResults, Regression, RunError, Runner, SymbolError};
use andweorc::{
    CountedEvent, Event, Layer, Outcome, PerfError, Scope, ScopeError, Session, SettingError, Settings, Speedup,
    StartError, Status, Subscriber, WriteError,
};

struct Telemetry<S> {
    layer: Layer<S>,
    subscriber: Subscriber,
    session: Option<(Session, Outcome, Status)>,
}

fn telemetry<S>() -> Telemetry<S> {
    Telemetry { layer: andweorc::layer(), subscriber: andweorc::subscriber(), session: None }
}

fn settings(event: Event, scope: Result<Scope, ScopeError>, speedup: Speedup) -> Settings {
    let mut settings = Settings::default();
    settings.event = event;
    settings.events = CountedEvent::ALL.to_vec();
    settings.scope = scope.unwrap_or_default();
    settings.speedups = vec![speedup];
    settings
}

fn why(error: StartError) -> Result<SettingError, Option<WriteError>> {
    match error {
        StartError::Setting(error) => Ok(error),
        StartError::Profile(error) => Err(Some(error)),
        _ => Err(None),
    }
}

fn why_no_lines(error: RunError) -> Result<SymbolError, Option<PerfError>> {
    match error {
        RunError::Symbols(error) => Ok(error),
        RunError::Sampler(error) => Err(Some(error)),
        _ => Err(None),
    }
}

fn lines(_: &Runner, results: &ProfilingResults) -> Vec<(Place, Regression)> {
    results.significant_impacts()
}

fn points(analysis: &Analysis) -> Vec<(PointKind, Now)> {
    let of = |point: &PointSummary| (point.kind, point.now);
    analysis.points.iter().map(of).collect()
}

fn best(analysis: &Analysis) -> Option<(TargetKind, Verdict, Option<&Effect>, Option<&Impact>)> {
    let best: &TargetSummary = analysis.targets.first()?;
    Some((best.kind, best.verdict, best.effects.first(), best.impacts.first()))
}

fn judged(analysis: &Analysis, point_index: usize, metric: Metric) -> Vec<Judged> {
    analysis.judged_by(Ranking::new(point_index, metric))
}

fn load(analysis: &Analysis) -> (Option<Load>, Option<Probes>) {
    (analysis.load, analysis.probes)
}

fn waits(analysis: &Analysis) -> Vec<(&WaitSummary, WaitTime)> {
    analysis.waits.iter().map(|wait| (wait, wait.by)).collect()
}

fn is_of(
    summary: (&PointSummary, &TargetSummary),
    point: &PointRecord,
    target: &TargetRecord,
) -> bool {
    summary.0.is(point) && summary.1.is(target)
}

fn hits(experiment: &ExperimentRecord) -> &[PointCount] {
    &experiment.points
}

fn main() {
    let telemetry: Telemetry<()> = telemetry();
    assert!(telemetry.session.is_none());
    drop((telemetry.layer, telemetry.subscriber));
    let half = Speedup::new(0.5).unwrap();
    assert_eq!(settings(Event::Cycles, "shop".parse(), half).speedups, [half]);
    assert!(why(StartError::AlreadyRunning).is_err());
    assert!(why_no_lines(RunError::AlreadyRunning).is_err());
    assert!(lines(&Runner::new(), &ProfilingResults::default()).is_empty());
    let analysis = Analysis::default();
    assert!(points(&analysis).is_empty() && best(&analysis).is_none());
    assert!(judged(&analysis, 0, Metric::Throughput).is_empty() && waits(&analysis).is_empty());
    assert_eq!(load(&analysis), (None, None));
    let _ = (is_of, hits);
}
