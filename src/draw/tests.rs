//! Text fits and keeps apart at any size, axes have round ticks, and every format is sound.

use proptest::prelude::*;

use super::axis::{Axis, Room};
use super::chart::{Chart, ChartStyle, LegendKey, LegendSample, pen};
use super::paper::{Length, PaperSize};
use super::*;

/// A picture of every kind of mark, 3 in by 2 in.
fn sheet() -> Sheet {
    let mut sheet = Sheet::new(216.0, 144.0);
    sheet
        .fill(MarkShape::Rect((10.0, 10.0), 50.0, 30.0), Ink::new(200, 0, 0))
        .says("a < b")
        .edged(Pen::new(Ink::BLACK, 2.0));
    sheet.fill(MarkShape::Circle((100.0, 50.0), 20.0), Ink { cover: 0.5, ..Ink::new(0, 0, 200) });
    sheet.line(
        (0.0, 100.0),
        (216.0, 100.0),
        Pen { dash: &[4.0, 2.0], ..Pen::new(Ink::BLACK, 1.0) },
    );
    sheet.text((108.0, 120.0), 12.0, Anchor::Middle, "Fünf & \"sechs\"");
    sheet.text((200.0, 50.0), 10.0, Anchor::Middle, "upwards").turned();
    sheet
}

#[test]
fn every_format_has_the_size_and_the_marks() {
    let svg = sheet().svg();
    for part in [
        "width=\"216pt\" height=\"144pt\"",
        "<title>a &lt; b</title>",
        "#c80000",
        "Fünf &amp; &quot;sechs&quot;",
        "rotate(-90",
    ] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
    let bytes = png::write(&sheet(), 300.0).unwrap();
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (900, 600));
    let at = |x: f64, y: f64| {
        let first = ((y / 72.0 * 300.0) as usize * 900 + (x / 72.0 * 300.0) as usize) * 3;
        [pixels[first], pixels[first + 1], pixels[first + 2]]
    };
    assert_eq!(
        (at(30.0, 20.0), at(5.0, 5.0), at(100.0, 50.0)),
        ([200, 0, 0], [255; 3], [127, 127, 227])
    );
    // Letters of both texts: dark pixels where they are.
    let dark = |x: std::ops::Range<u32>, y: std::ops::Range<u32>| {
        y.flat_map(|y| x.clone().map(move |x| (x, y)))
            .filter(|&(x, y)| at(f64::from(x), f64::from(y))[0] < 120)
            .count()
    };
    assert!(
        dark(60..160, 114..127) > 40 && dark(194..207, 25..75) > 20,
        "{} {}",
        dark(60..160, 114..127),
        dark(194..207, 25..75)
    );
    assert!(png::write(&sheet(), 1e5).unwrap_err().contains("too large"));
    let pdf = pdf::write(&sheet()).unwrap();
    let has = |part: &str| pdf.windows(part.len()).any(|w| w == part.as_bytes());
    assert!(
        pdf.starts_with(b"%PDF-") && has("/MediaBox [0 0 216 144]") && has("DejaVuSans"),
        "{}",
        String::from_utf8_lossy(&pdf)
    );
    assert_eq!(
        (png::write(&sheet(), 72.0), pdf),
        (png::write(&sheet(), 72.0), pdf::write(&sheet()).unwrap()),
        "the same bytes each time"
    );
}

#[test]
fn the_name_of_a_file_says_its_format() {
    for (name, format) in [
        ("a.svg", PictureFormat::Svg),
        ("a.b.PNG", PictureFormat::Png),
        ("/x/y.pdf", PictureFormat::Pdf),
    ] {
        assert_eq!(PictureFormat::of(Path::new(name)).unwrap(), format);
    }
    assert!(PictureFormat::of(Path::new("a.jpg")).unwrap_err().contains(".svg, .png or .pdf"));
    assert!(PictureFormat::of(Path::new("svg")).is_err());
}

#[test]
fn lengths_have_units_and_bounds() {
    #[derive(clap::Parser)]
    struct Args {
        #[command(flatten)]
        paper: PaperSize,
    }
    let parse = |line: &str| {
        <Args as clap::Parser>::try_parse_from(format!("x {line}").split_whitespace())
            .map(|a| a.paper)
    };
    let of = |text: &str| parse(&format!("--width {text}")).unwrap();
    assert_eq!(
        (of("3.3in").width().round(), of("84mm").width().round(), of("8.4cm").width().round()),
        (238.0, 238.0, 238.0)
    );
    assert_eq!((of("600px").width(), of("600px").dpi(), of("600pt").dpi()), (450.0, 96.0, 300.0));
    assert_eq!(
        (
            parse("").unwrap().text(),
            parse("--font-size 8").unwrap().text(),
            parse("--dpi 72").unwrap().dpi()
        ),
        (9.0, 8.0, 72.0)
    );
    assert_eq!(
        PaperSize::default().width(),
        parse("").unwrap().width(),
        "the default of the option and of pictures without options"
    );
    for bad in ["3.3", "in", "0.5in", "-4in", "1e9mm", "NaNin", "4 parsecs"] {
        assert!(bad.parse::<Length>().is_err(), "{bad}");
    }
    assert!(
        parse("--font-size 1").is_err()
            && parse("--font-size x").is_err()
            && parse("--dpi 9").is_err()
    );
}

fn labels(axis: &Axis) -> Vec<&str> {
    axis.ticks.iter().map(|t| t.label.as_str()).collect()
}

#[test]
fn ticks_are_round_and_as_many_as_have_room() {
    let room = |length| Room { length, text: 8.0, upright: false };
    let axis = Axis::time("Time", 3.2e9, room(200.0));
    assert_eq!(
        (axis.title.as_str(), labels(&axis)),
        ("Time (s)", vec!["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0"])
    );
    assert_eq!(labels(&Axis::time("Time", 3.2e9, room(60.0))), ["0", "2"]);
    assert_eq!(Axis::time("T", 1.5e6, room(100.0)).title, "T (ms)");
    assert_eq!(Axis::time("T", 7200e9, room(100.0)).title, "T (min)");
    assert_eq!(Axis::time("T", 1.0, room(100.0)).title, "T (ns)");
    let upright = Room { upright: true, ..room(120.0) };
    assert_eq!(
        labels(&Axis::percent("Share", 1.02, upright)),
        ["0", "20", "40", "60", "80", "100"]
    );
    let axis = Axis::bytes("Demand", 7e3, upright);
    assert_eq!((axis.title.as_str(), labels(&axis)), ("Demand (kB)", vec!["0", "2", "4", "6"]));
    let log = Axis::log_time("CCT", 3e6, 2e10, room(250.0));
    assert_eq!((log.range, labels(&log)), ((2e6, 2e10), vec!["10 ms", "100 ms", "1 s", "10 s"]));
    // Marks at all other multiples of a power of ten.
    assert_eq!((log.minor.len(), log.minor[0], log.minor.contains(&1e9)), (33, 2e6, false));
    assert_eq!(labels(&Axis::log_time("CCT", 3e6, 2e10, room(100.0))), ["10 ms", "1 s"]);
    assert_eq!(
        labels(&Axis::log_time("CCT", 2e6, 8e6, room(200.0))),
        ["2 ms", "5 ms", "10 ms", "20 ms"]
    );
    assert_eq!(
        labels(&Axis::log_time("CCT", 1e12, 2e14, room(250.0))),
        ["1\u{a0}000 s", "10\u{a0}000 s", "100\u{a0}000 s"]
    );
    assert_eq!(labels(&Axis::log_plain("ratio", 0.3, 4.0, upright)), ["0.2", "0.5", "1", "2", "5"]);
    assert_eq!(
        (log.part(2e6), log.part(0.0), log.part(2e10), log.part(f64::MAX)),
        (0.0, 0.0, 1.0, 1.0)
    );
}

#[test]
fn what_is_too_long_ends_in_dots() {
    assert_eq!(font::shortened("host-0", 10.0, 60.0), "host-0");
    let short = font::shortened("a-long-name-of-a-host", 10.0, 60.0);
    assert!(
        short.starts_with("a-lo") && short.ends_with('…') && font::width(&short, 10.0) <= 60.0,
        "{short}"
    );
}

/// What people without red cones, without green cones, and all others see of a colour: red, green
/// and blue in linear light, after Viénot, Brettel and Mollon (1999).
fn seen([r, g, b]: [u8; 3]) -> [[f64; 3]; 3] {
    let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
    let [r, g, b] = [r, g, b].map(linear);
    let red = 0.112_38 * r + 0.887_62 * g;
    let green = 0.292_75 * r + 0.707_25 * g;
    [[red, red, 0.004_01 * (r - g) + b], [green, green, -0.022_34 * (r - g) + b], [r, g, b]]
}

/// CIELAB of linear light.
fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
    let xyz = [
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    ];
    let [x, y, z] = xyz.map(|v| if v > 0.008_856 { v.cbrt() } else { 7.787 * v + 16.0 / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// Of two fills, those with other lines are apart; those with the same have colours that anyone
/// tells apart.
#[test]
fn thirty_six_fills_are_told_apart_with_any_colour_vision() {
    let mut least = f64::MAX;
    for (k, l) in (0..36).flat_map(|k| (0..k).map(move |l| (k, l))) {
        let (one, other) = (many(k), many(l));
        if one.hatch != other.hatch {
            continue;
        }
        for (a, b) in seen(one.ink.rgb).into_iter().zip(seen(other.ink.rgb)) {
            let (a, b) = (lab(a), lab(b));
            let apart = (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
            assert!(apart > LEAST_APART, "{k} and {l} are {apart:.1} apart");
            least = least.min(apart);
        }
    }
    println!("the closest are {least:.1} apart");
    let fills: std::collections::HashSet<String> =
        (0..72).map(|k| format!("{:?}", many(k))).collect();
    assert_eq!((fills.len(), many(72)), (72, many(0)));
}

/// The distance in CIELAB at which colours of small areas are told apart for certain; 2.3 is what
/// is just noticed side by side.
const LEAST_APART: f64 = 8.0;

fn paper(width: f64, size: f64) -> PaperSize {
    #[derive(clap::Parser)]
    struct Args {
        #[command(flatten)]
        paper: PaperSize,
    }
    let line = [
        "x".into(),
        "--width".into(),
        format!("{width}in"),
        "--font-size".into(),
        format!("{size}"),
    ];
    <Args as clap::Parser>::try_parse_from(line).expect("a size").paper
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn labels_fit_on_charts_of_any_size(
        width in 2.5f64..12.0, size in 5.0f64..12.0, end in 1.0f64..1e20, top in 0.0f64..1e12, log: bool,
        titles in ("[a-zA-Z ,]{0,70}", "[a-zA-Z ,]{0,70}"), names in prop::collection::vec("[a-zA-Z0-9 ,:%-]{0,70}", 0..6),
    ) {
        let key = |(k, name): (usize, &String)| LegendKey { label: name.clone(), sample: LegendSample::Line(pen(k, size)) };
        let look = ChartStyle { title: names.join(" "), log, paper: paper(width, size) };
        let time = |room| if log { Axis::log_time(&titles.0, 1.0, end, room) } else { Axis::time(&titles.0, end, room) };
        let chart = Chart::new(&look, names.iter().enumerate().map(key).collect(), time, |room| Axis::bytes(&titles.1, top, room));
        // A head that is higher than the page leaves no place for the chart, but the page grows
        // with it.
        prop_assert_eq!(chart.sheet.legible(), Ok(()));
    }

    #[test]
    fn names_fit_on_rows_of_any_size(
        width in 2.5f64..12.0, size in 5.0f64..14.0, end in 1u64..u64::MAX, names in prop::collection::vec("[a-zA-Z0-9 -]{0,70}", 1..20),
    ) {
        let bar = |(k, name): (usize, &String)| gantt::GanttBar {
            row: k as f64, height: 1.0, from: end / 3, until: end, fill: many(k), label: name.clone(), title: name.clone(),
        };
        let bars = names.iter().enumerate().map(bar).collect();
        let rows = gantt::GanttChart { names: names.clone(), bars, end, keys: gantt::legend(&names) };
        let sheet = rows.draw(&ChartStyle { title: names.join(" "), log: false, paper: paper(width, size) });
        prop_assert_eq!(sheet.legible(), Ok(()));
    }

    #[test]
    fn lines_of_a_hatch_stay_in_their_area(x in 0.0f64..300.0, y in 0.0f64..300.0, w in 0.1f64..90.0, h in 0.1f64..90.0, k in 0usize..72) {
        let ends = hatched((x, y), (w, h), many(k).hatch, 3.0);
        let inside = |p: &Point| p.0 >= x - 1e-6 && p.0 <= x + w + 1e-6 && p.1 >= y - 1e-6 && p.1 <= y + h + 1e-6;
        prop_assert!(ends.iter().all(|(a, b)| inside(a) && inside(b)), "{ends:?}");
        // Where there is room for a line of each kind, there is one.
        prop_assert!(many(k).hatch == Hatch::Plain || w + h < 10.0 || w.min(h) < 3.1 || !ends.is_empty());
    }

    #[test]
    fn wrapped_lines_fit_and_lose_nothing(text in "[a-z ]{0,80}", room in 20.0f64..200.0) {
        let lines = font::wrapped(&text, 10.0, room);
        prop_assert!(lines.iter().all(|l| font::width(l, 10.0) <= room), "{lines:?}");
        let kept = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
        prop_assert_eq!(kept(&lines.concat()), kept(&text));
    }
}
