//! A program that runs already: every question is a `POST` to its address, and the body of the
//! response is the answer.
//!
//! A thread of its own speaks to it over one connection, so that a program that does not answer
//! cannot hold up the control loop. A question that failed costs that answer only: the next one is
//! asked again, also after the program was started again.

use std::net::TcpStream;
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::Uri;
use ureq::http::header::CONTENT_TYPE;

use super::{LONGEST, ProgramLink, short, spawn};
use crate::circuits::external::NoAnswer;

/// Time between two looks for a program that may be starting.
const AGAIN: Duration = Duration::from_millis(20);

/// An answer that is late by less is waited for, and dropped: the connection is good for the next
/// question then.
const LATE: Duration = Duration::from_secs(1);

/// A question with its number and the end of the time for its answer.
type PostedQuestion = (u64, String, Instant);

/// A program at an address.
pub struct Http {
    /// How many questions were asked.
    asked: u64,
    questions: mpsc::SyncSender<PostedQuestion>,
    answers: mpsc::Receiver<(u64, Result<String, String>)>,
}

impl Http {
    /// A program at this address, which is not asked yet. It may be starting: one that does not
    /// listen before `until` is reported by the first question.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn new(url: &str, until: Instant) -> Result<Self, String> {
        while !listens(url) && Instant::now() < until {
            std::thread::sleep(AGAIN);
        }
        // One question waits while another one is asked.
        let (questions, to_ask) = mpsc::sync_channel(1);
        let (told, answers) = mpsc::channel();
        let url = url.to_owned();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .build()
            .into();
        spawn("ask", move || ask_all(&agent, &url, &to_ask, &told)).map_err(|e| e.to_string())?;
        Ok(Self { asked: 0, questions, answers })
    }
}

impl ProgramLink for Http {
    fn send(&mut self, question: String, until: Instant) -> Result<(), NoAnswer> {
        let sent = self.questions.try_send((self.asked + 1, question, until));
        sent.map(|()| self.asked += 1).map_err(|e| match e {
            TrySendError::Full(_) => NoAnswer::late("has not answered the questions before"),
            TrySendError::Disconnected(_) => "the thread that asks has ended".to_owned().into(),
        })
    }

    fn answer(&mut self, until: Instant) -> Result<Option<String>, String> {
        loop {
            match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((number, answer)) if number == self.asked => return answer.map(Some),
                // It came after its time.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the thread that asks has ended".into());
                }
            }
        }
    }
}

/// Whether there is a program at this address.
fn listens(url: &str) -> bool {
    let authority = url.parse::<Uri>().ok().and_then(|u| u.into_parts().authority);
    authority.is_some_and(|a| TcpStream::connect((a.host(), a.port_u16().unwrap_or(80))).is_ok())
}

/// Asks until the run ends.
fn ask_all(
    agent: &Agent,
    url: &str,
    questions: &mpsc::Receiver<PostedQuestion>,
    answers: &mpsc::Sender<(u64, Result<String, String>)>,
) {
    while let Ok((number, question, until)) = questions.recv() {
        let time = until.saturating_duration_since(Instant::now()) + LATE;
        let answer = ask(agent, url, question, time).map_err(|e| e.to_string()).and_then(|r| r);
        if answers.send((number, answer)).is_err() {
            return;
        }
    }
}

/// One question. The inner error is what a program said that answered with another status than 200.
fn ask(
    agent: &Agent,
    url: &str,
    question: String,
    time: Duration,
) -> Result<Result<String, String>, ureq::Error> {
    let request = agent
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .config()
        .timeout_global(Some(time))
        .build();
    let mut response = request.send(question)?;
    let body = response.body_mut().with_config().limit(LONGEST).read_to_string()?;
    let status = response.status();
    Ok(if status == 200 {
        Ok(body)
    } else {
        Err(format!("answered with status {}: `{}`", status.as_u16(), short(&body)))
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpListener};

    use socket2::{Domain, Socket, Type};

    use super::*;

    /// Takes one request and gives its body; `None` when the client is gone.
    fn request(from: &mut BufReader<TcpStream>) -> Option<String> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if from.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some((name, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().unwrap_or_else(|_| panic!("{name}: {value}"));
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).ok()?;
        String::from_utf8(body).ok()
    }

    /// A program at an address, whose answers, with their status, `say` gives for questions; none
    /// closes the connection.
    fn program(say: impl Fn(&str) -> Option<(u16, String)> + Send + Sync + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut from = BufReader::new(stream);
                while let Some(question) = request(&mut from) {
                    let Some((status, body)) = say(&question) else { break };
                    let head =
                        format!("HTTP/1.1 {status} said\r\nContent-Length: {}\r\n\r\n", body.len());
                    let _ = from.get_mut().write_all((head + &body).as_bytes());
                }
            }
        });
        format!("http://{address}/decide")
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn asks(it: &mut Http, question: &str, until: Instant) -> Result<Option<String>, String> {
        it.send(question.into(), until).map_err(|e| e.to_string())?;
        it.answer(until)
    }

    #[test]
    fn a_question_that_fails_costs_one_answer() {
        let url = program(|question| match question {
            "bad" => Some((500, "no sun\n".into())),
            "close" => None,
            "moved" => Some((302, String::new())),
            _ => Some((200, format!("{question}!"))),
        });
        let mut it = Http::new(&url, soon()).unwrap();
        for (question, error) in
            [("bad", "answered with status 500: `no sun`"), ("close", ""), ("moved", "status 302")]
        {
            assert_eq!(asks(&mut it, "a", soon()), Ok(Some("a!".into())));
            let why = asks(&mut it, question, soon()).unwrap_err();
            assert!(why.contains(error) && !why.is_empty(), "{question}: {why}");
        }
        assert_eq!(asks(&mut it, "b", soon()), Ok(Some("b!".into())));
    }

    #[test]
    fn an_answer_that_comes_late_is_none_to_the_next_question() {
        let ((go, wait), (begun, is_asked)) = (mpsc::channel::<()>(), mpsc::channel());
        let wait = parking_lot::Mutex::new(wait);
        let url = program(move |question| {
            if question == "slow" {
                begun.send(()).ok()?;
                wait.lock().recv().ok()?;
            }
            Some((200, question.into()))
        });
        let mut it = Http::new(&url, soon()).unwrap();
        assert_eq!(asks(&mut it, "fast", soon()), Ok(Some("fast".into())));
        // The question is still under way when its answer is not waited for any more.
        it.send("slow".into(), soon()).unwrap();
        is_asked.recv().unwrap();
        assert_eq!(it.answer(Instant::now()), Ok(None));
        it.send("next".into(), soon()).unwrap();
        assert!(it.send("third".into(), soon()).unwrap_err().is_late());
        go.send(()).unwrap();
        assert_eq!(it.answer(soon()), Ok(Some("next".into())));
    }

    #[test]
    fn a_program_that_is_not_there_is_asked_again() {
        // No one else gets the port, and nothing listens yet.
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut it = Http::new(&format!("http://{address}/"), Instant::now()).unwrap();
        assert!(asks(&mut it, "a", soon()).unwrap_err().contains("onnection refused"));
        socket.listen(1).unwrap();
        let listener = TcpListener::from(socket);
        std::thread::spawn(move || {
            let mut from = BufReader::new(listener.accept().unwrap().0);
            request(&mut from);
            from.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
        });
        assert_eq!(asks(&mut it, "a", soon()), Ok(Some("hi".into())));
    }
}
