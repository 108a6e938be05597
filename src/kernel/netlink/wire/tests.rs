use std::collections::VecDeque;

use netlink_packet_core::ParseableParametrized;
use netlink_packet_route::RouteNetlinkMessage;
use proptest::prelude::*;

use super::*;

const OWN: u32 = 7;
const ITEM: u16 = 16;

/// A message as the kernel lays it out.
fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut m = vec![];
    m.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    m.extend(kind.to_ne_bytes());
    m.extend(flags.to_ne_bytes());
    m.extend(sequence.to_ne_bytes());
    m.extend([0; 4]);
    m.extend(body);
    m.resize(m.len().next_multiple_of(4), 0);
    m
}

fn item(sequence: u32, number: u8) -> Vec<u8> {
    message(ITEM, 2, sequence, &[number])
}

fn done(sequence: u32) -> Vec<u8> {
    message(DONE, 2, sequence, &0i32.to_ne_bytes())
}

fn error(sequence: u32, code: i32) -> Vec<u8> {
    message(ERROR, 0, sequence, &code.to_ne_bytes())
}

/// Gathers the numbers of a dump's items from datagrams; number 13 cannot be read. Gives what is
/// left in the socket, too.
fn dump(datagrams: Vec<Vec<u8>>) -> (io::Result<(DumpEnd, Vec<u8>)>, usize) {
    let mut socket = VecDeque::from(datagrams);
    let receive = |buffer: &mut [u8], no_wait: bool| match socket.pop_front() {
        Some(d) => {
            buffer[..d.len()].copy_from_slice(&d);
            Ok(d.len())
        }
        None if no_wait => Err(io::ErrorKind::WouldBlock.into()),
        None => Err(io::Error::other("it waits for ever")),
    };
    let read = |_: u16, body: &[u8]| match body.first() {
        Some(13) => Err(io::Error::other("unlucky")),
        n => Ok(n.copied()),
    };
    let got = gather(&mut [0; 1 << 16], OWN, receive, read);
    (got, socket.len())
}

#[test]
fn a_dump_ends_where_the_kernel_says_so() {
    let (got, left) =
        dump(vec![[item(OWN, 1), item(OWN, 2)].concat(), item(OWN, 3), done(OWN), item(OWN, 4)]);
    assert_eq!((got.unwrap(), left), ((DumpEnd::Whole, vec![1, 2, 3]), 1));
}

#[test]
fn answers_to_another_request_are_not_taken_and_do_not_end_the_dump() {
    let old = [item(OWN - 1, 9), done(OWN - 1)].concat();
    let (got, _) = dump(vec![old, item(OWN, 1), error(OWN - 2, -libc::EBUSY), done(OWN)]);
    assert_eq!(got.unwrap(), (DumpEnd::Whole, vec![1]));
}

#[test]
fn a_list_that_changed_while_it_was_made_is_interrupted() {
    let torn = message(ITEM, 2 | NLM_F_DUMP_INTR, OWN, &[2]);
    let (got, _) = dump(vec![item(OWN, 1), torn, done(OWN)]);
    assert_eq!(got.unwrap().0, DumpEnd::Interrupted);
    // An empty rest may be all that says so.
    let (got, _) =
        dump(vec![item(OWN, 1), message(DONE, 2 | NLM_F_DUMP_INTR, OWN, &0i32.to_ne_bytes())]);
    assert_eq!(got.unwrap().0, DumpEnd::Interrupted);
    // Another's interruption is another's.
    let (got, _) = dump(vec![message(ITEM, 2 | NLM_F_DUMP_INTR, OWN - 1, &[2]), done(OWN)]);
    assert_eq!(got.unwrap(), (DumpEnd::Whole, vec![]));
}

#[test]
fn a_list_that_had_no_room_in_the_socket_is_interrupted_whether_its_end_was_lost_or_not() {
    for rest in [vec![], vec![item(OWN, 3)], vec![item(OWN, 3), done(OWN), item(OWN + 1, 5)]] {
        let left = usize::from(rest.len() == 3);
        let mut socket: VecDeque<io::Result<Vec<u8>>> =
            VecDeque::from([Ok(item(OWN, 1)), Err(io::Error::from_raw_os_error(libc::ENOBUFS))]);
        socket.extend(rest.into_iter().map(Ok));
        let receive = |buffer: &mut [u8], no_wait: bool| {
            let d = socket.pop_front().unwrap_or_else(|| {
                Err(if no_wait {
                    io::ErrorKind::WouldBlock.into()
                } else {
                    io::Error::other("it waits")
                })
            })?;
            buffer[..d.len()].copy_from_slice(&d);
            Ok(d.len())
        };
        let got = gather(&mut [0; 4096], OWN, receive, |_, body: &[u8]| Ok(body.first().copied()));
        assert_eq!((got.unwrap().0, socket.len()), (DumpEnd::Interrupted, left));
    }
}

#[test]
fn an_answer_that_cannot_be_read_fails_the_dump_after_all_of_it_was_received() {
    let (got, left) =
        dump(vec![item(OWN, 1), item(OWN, 13), item(OWN, 2), done(OWN), item(OWN + 1, 5)]);
    assert_eq!((got.unwrap_err().to_string(), left), ("unlucky".into(), 1));
    // A message that is cut short hides the rest of its datagram, perhaps the end of the dump, too:
    // nothing is waited for.
    let mut cut = item(OWN, 1);
    cut.truncate(HEADER - 2);
    let (got, left) = dump(vec![cut, item(OWN, 2)]);
    assert_eq!(
        (got.unwrap_err().to_string(), left),
        ("the kernel's answer cannot be read: a message is cut short".into(), 0)
    );
}

#[test]
fn a_dump_that_the_kernel_refuses_or_breaks_off_is_an_error() {
    let (got, _) = dump(vec![error(OWN, -libc::EPERM)]);
    assert_eq!(got.unwrap_err().raw_os_error(), Some(libc::EPERM));
    let broken = message(DONE, 2, OWN, &(-libc::ENOMEM).to_ne_bytes());
    let (got, _) = dump(vec![item(OWN, 1), broken]);
    assert_eq!(got.unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    let (got, _) = dump(vec![message(OVERRUN, 2, OWN, &[]), done(OWN)]);
    assert!(got.unwrap_err().to_string().contains("answers were lost"));
}

#[test]
fn refusals_are_told_and_the_last_answer_ends_them() {
    let datagram = [
        error(OWN, 0),
        error(OWN - 1, -libc::EBUSY),
        error(OWN + 1, -libc::EEXIST),
        error(OWN + 2, 0),
    ]
    .concat();
    let mut refused = vec![];
    let n =
        acknowledged(&datagram, OWN, 2, |k, why| refused.push((k, why.raw_os_error()))).unwrap();
    assert_eq!((n, refused), (true, vec![(1, Some(libc::EEXIST))]));
    let answers = |datagram: Vec<u8>, n| acknowledged(&datagram, OWN, n, |_, _| {}).unwrap();
    assert!(!answers(error(OWN + 1, -libc::EBUSY), 3) && answers(error(OWN + 2, -libc::EBUSY), 3));
}

proptest! {
    #![proptest_config(crate::testing::drawn(2000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..60u16, sequence in 5..9u32) {
        let read = |kind: u16, body: &[u8]| RouteNetlinkMessage::parse_with_param(body, kind).map(Some).map_err(io::Error::other);
        for datagram in [bytes.clone(), message(kind, 2, sequence, &bytes)] {
            let mut socket = VecDeque::from([datagram.clone(), done(OWN)]);
            let receive = |buffer: &mut [u8], _: bool| {
                let d = socket.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
                buffer[..d.len()].copy_from_slice(&d);
                Ok(d.len())
            };
            let _ = gather(&mut [0; 4096], OWN, receive, read);
            let _ = acknowledged(&datagram, OWN, 3, |_, _| {});
        }
    }

    /// However messages of several requests are mixed and cut into datagrams, each gets its own,
    /// and is whole only if it is.
    #[test]
    fn every_request_gets_its_own_answers(
        stream in prop::collection::vec((5..10u32, 0..13u8, any::<bool>()), 0..60), cuts in prop::collection::vec(1..6usize, 60),
    ) {
        let torn = |m: &(u32, u8, bool)| m.2 && m.1.is_multiple_of(4);
        let bytes = |m: &(u32, u8, bool)| message(ITEM, if torn(m) { 2 | NLM_F_DUMP_INTR } else { 2 }, m.0, &[m.1]);
        let mut parts: Vec<Vec<u8>> = stream.iter().map(bytes).collect();
        parts.push(done(OWN));
        let mut datagrams = vec![];
        for n in cuts {
            let n = n.min(parts.len());
            datagrams.push(parts.drain(..n).collect::<Vec<_>>().concat());
        }
        datagrams.extend(parts);
        let own = || stream.iter().filter(|m| m.0 == OWN);
        let ended = if own().any(torn) { DumpEnd::Interrupted } else { DumpEnd::Whole };
        let (got, _) = dump(datagrams);
        prop_assert_eq!(got.unwrap(), (ended, own().map(|m| m.1).collect()));
    }
}
