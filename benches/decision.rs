//! The decisions about a run, and its backoff.

#![allow(missing_docs, reason = "benches are programs of their own")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use nrllm_runtime::domain::backoff::Backoff;
use nrllm_runtime::domain::decision::{Facts, after_failure, stale};

fn decision(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    let facts = Facts { pending_effect: b"idempotent_write", has_request: true, requeue_count: 2 };
    let forbidden = Facts { pending_effect: b"non_idempotent_write", ..facts };
    group.bench_function("stale", |bencher| bencher.iter(|| stale(black_box(facts), black_box(3))));
    group.bench_function("stale, forbidden", |bencher| {
        bencher.iter(|| stale(black_box(forbidden), black_box(3)))
    });
    group.bench_function("after a failure", |bencher| {
        bencher.iter(|| after_failure(black_box(true), black_box(facts), black_box(3)))
    });
    group.finish();

    let mut group = criterion.benchmark_group("delay");
    let uuid = b"0e12362e-cbf0-4052-a2e9-f3c849a50bc4";
    for (name, jitter) in [("without jitter", 0.0), ("with jitter", 0.2)] {
        let backoff = Backoff { jitter, ..Backoff::default() };
        group.bench_function(name, |bencher| {
            bencher.iter(|| backoff.delay_ms(black_box(uuid), black_box(3)))
        });
    }
    group.finish();
}

criterion_group!(benches, decision);
criterion_main!(benches);
