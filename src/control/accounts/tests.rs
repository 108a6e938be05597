use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum AccountStep {
    Declare(u32, ProgressBy, u64),
    Finish(u32),
    Cancel(u32),
    Progress(u32, u64),
    Count(u64, u64),
}

fn step() -> impl Strategy<Value = AccountStep> {
    let by = prop_oneof![Just(ProgressBy::Sender), Just(ProgressBy::Counters)];
    prop_oneof![
        3 => (0..12u32, by, 1..20u64).prop_map(|(id, by, n)| AccountStep::Declare(id, by, n)),
        1 => (0..12u32).prop_map(AccountStep::Finish),
        1 => (0..12u32).prop_map(AccountStep::Cancel),
        1 => (0..12u32, 0..30u64).prop_map(|(id, n)| AccountStep::Progress(id, n)),
        2 => (0..15u64, 0..15u64).prop_map(|(sent, ocs)| AccountStep::Count(sent, ocs.min(sent))),
    ]
}

/// What a coflow is, told by a plain list: asked, received, how it ended.
type Plain = std::collections::BTreeMap<u32, (u64, u64, Option<bool>)>;

/// Takes one step in both; says whether they answer alike.
fn take(a: &mut Accounts, plain: &mut Plain, step: AccountStep) -> bool {
    let racks = (RackId(0), RackId(1));
    let pair = |bytes| vec![RackBytes { from: racks.0, to: racks.1, bytes: Bytes(bytes) }];
    match step {
        AccountStep::Declare(id, progress, asked) => {
            let new = Opening {
                id: CoflowId(id),
                name: "c".into(),
                weight: 1,
                pairs: &pair(asked),
                bound: Span(1),
                progress,
                priorities: &Priorities::default(),
            };
            let told = a.declare(new, Time(1), 2);
            let fresh = !plain.contains_key(&id);
            plain.entry(id).or_insert((asked, 0, None));
            if fresh {
                told == Ok(Bytes(asked))
            } else {
                matches!(told, Err(Rejected::Conflict(_)))
            }
        }
        AccountStep::Finish(id) | AccountStep::Cancel(id) => {
            let finish = matches!(step, AccountStep::Finish(_));
            let told = if finish {
                a.finish(CoflowId(id), Time(5)).map(drop)
            } else {
                a.cancel(CoflowId(id), None, Time(5))
            };
            match plain.get_mut(&id) {
                None => matches!(told, Err(Rejected::NotFound(_))),
                Some((_, _, Some(_))) => matches!(told, Err(Rejected::Conflict(_))),
                Some(c) => {
                    *c = (c.0, if finish { c.0 } else { c.1 }, Some(finish));
                    told.is_ok()
                }
            }
        }
        AccountStep::Progress(id, bytes) => {
            let told = a.progress(CoflowId(id), &pair(bytes));
            if let Some(c) = plain.get_mut(&id).filter(|c| c.2.is_none()) {
                c.1 = c.1.max(bytes.min(c.0));
            }
            told.is_ok() == plain.contains_key(&id)
        }
        AccountStep::Count(sent, ocs) => {
            for id in a.count(
                |i, j| if (i, j) == racks { (sent, ocs) } else { (0, 0) },
                |_, _| 0,
                Time(9),
            ) {
                plain.get_mut(&id.0).expect("it was declared").2 = Some(true);
                a.finish(id, Time(9)).expect("it is open");
            }
            // The accounts themselves tell to which coflows the counters' bytes went.
            for (id, c) in plain.iter_mut().filter(|c| c.1.2 != Some(false)) {
                c.1 = a.views().get(CoflowId(*id)).expect("it is remembered").received.0;
            }
            true
        }
    }
}

#[test]
fn elephants_of_clients_are_those_of_which_bytes_are_left() {
    let mut a = Accounts::default();
    let pair = |from, to| (RackId(from), RackId(to));
    let mut open = |id, progress, pairs: &[(u32, u32, u64)]| {
        let of = |&(from, to, bytes): &_| RackBytes {
            from: RackId(from),
            to: RackId(to),
            bytes: Bytes(bytes),
        };
        let new = Opening {
            id: CoflowId(id),
            name: "c".into(),
            weight: 1,
            pairs: &pairs.iter().map(of).collect::<Vec<_>>(),
            bound: Span(1),
            progress,
            priorities: &Priorities::default(),
        };
        a.declare(new, Time(1), 3).expect("it is declared");
    };
    open(0, ProgressBy::Counters, &[(0, 1, 10), (1, 0, 4), (2, 2, 30)]);
    open(1, ProgressBy::Sender, &[(1, 2, 20)]);
    let found = |a: &Accounts, threshold| a.elephants_of_clients(Bytes(threshold));
    assert_eq!(found(&a, 4), [pair(0, 1), pair(1, 0)].into());
    assert_eq!(found(&a, 5), [pair(0, 1)].into());
    assert_eq!(found(&a, 11), [].into());
    // All of one has been counted.
    a.count(|i, j| if (i, j) == pair(0, 1) { (10, 0) } else { (0, 0) }, |_, _| 0, Time(2));
    assert_eq!(found(&a, 4), [pair(1, 0)].into());
    a.cancel(CoflowId(0), None, Time(3)).expect("it is open");
    assert_eq!(found(&a, 0), [].into());
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// Few coflows are all remembered, each once, in the state that a plain list has; sums
    /// count what has ended.
    #[test]
    fn accounts_are_those_of_a_plain_list(steps in prop::collection::vec(step(), 0..60)) {
        let (mut a, mut plain) = (Accounts::default(), Plain::new());
        for s in steps {
            let text = format!("{s:?}");
            prop_assert!(take(&mut a, &mut plain, s), "{}", text);
            let seen = a.views();
            // What was made for the last snapshot is shared only as long as it is right.
            for threshold in [Bytes(5), Bytes(10)] {
                let expected = a.live.accounts().filter(|(_, k)| k.open()).map(|(_, k)| k.recounted().to_carry(threshold));
                prop_assert!(seen.live.to_carry(threshold).into_iter().eq(expected));
            }
            prop_assert!(seen.live.iter().cloned().eq(a.live.accounts().map(|(_, k)| k.recounted().view().clone())));
            prop_assert_eq!(seen.iter().count(), plain.len());
            for (&id, &(asked, received, ended)) in &plain {
                let c = seen.get(CoflowId(id)).expect("it is remembered");
                let ends = (c.finished.is_some(), c.cancelled.is_some());
                prop_assert_eq!((c.bytes.0, ends), (asked, (ended == Some(true), ended == Some(false))));
                prop_assert!(c.received.0 >= received && c.received <= c.bytes && c.over_ocs <= c.received, "{:?}", c);
            }
            let ends = |how: bool| plain.values().filter(|c| c.2 == Some(how)).count() as u64;
            prop_assert_eq!((seen.totals.finished, seen.totals.cancelled), (ends(true), ends(false)));
            prop_assert_eq!(seen.open as u64, plain.len() as u64 - ends(true) - ends(false));
            prop_assert_eq!(seen.closed.total() + seen.live.len() as u64, plain.len() as u64);
        }
        // Nothing waits for the counters for ever.
        (0..LAST_READ).for_each(|_| drop(a.count(|_, _| (0, 0), |_, _| 0, Time(10))));
        prop_assert_eq!(a.views().live.len(), a.views().open);
    }
}
