//! Drawings of the shipped networks: nothing overlaps, and all is on the page.

use super::*;
use crate::config::read_topology;
use crate::config::shipped::Shelf;

fn shipped(name: &str) -> Topology {
    let file = Shelf::Topologies.find(name).unwrap_or_else(|| panic!("{name} is shipped"));
    read_topology(file.text, name).unwrap()
}

#[test]
fn boxes_of_shipped_networks_lie_side_by_side_on_the_page() {
    for name in [
        "hybrid-8x2",
        "hybrid-64x1",
        "fat-tree-4",
        "fat-tree-4x8",
        "tree-8x8",
        "tree-64",
        "tree-512",
        "vl2-64",
        "bcube-64",
        "fb-150",
        "jobpacker-20",
    ] {
        let t = shipped(name);
        let page = SketchLayout::new(&t);
        let switches = page.nodes.iter().map(|n| (n.x - n.width / 2, n.y, n.x + n.width / 2));
        let racks = page.racks.iter().map(|r| (r.left, r.top, r.left + page.frame.0));
        let mut boxes: Vec<_> = switches.chain(racks).collect();
        boxes.sort_by_key(|b| (b.1, b.0));
        for pair in boxes.windows(2).filter(|p| p[0].1 == p[1].1) {
            assert!(pair[0].2 < pair[1].0, "{name}: {pair:?}");
        }
        let (width, height) = (page.size.0 as i32, page.size.1 as i32);
        assert!(
            boxes
                .iter()
                .all(|b| b.0 >= LEFT && b.2 <= width - MARGIN && b.1 + page.frame.1 <= height),
            "{name}"
        );
        let graph = t.eps.graph().map_or(0, |g| g.cables.len());
        let uplinks = if name.starts_with("bcube") { 0 } else { t.rack_count() };
        assert_eq!(
            (page.cables.len(), page.fibres.len()),
            (graph + uplinks, t.planes.len() * t.rack_count()),
            "{name}"
        );
        let mut notes: Vec<_> = page
            .notes
            .iter()
            .filter(|n| !n.lines[0].is_empty())
            .map(|n| (n.y, n.lines.len() as i32))
            .collect();
        notes.sort_unstable();
        assert!(
            notes.windows(2).all(|n| n[1].0 - n[0].0 >= 8 * (n[0].1 + n[1].1)),
            "{name}: notes in the margin overlap: {notes:?}"
        );
    }
}

#[test]
fn a_drawing_names_its_parts_and_rates() {
    let text = sheet(&shipped("fat-tree-4")).unwrap().svg();
    for part in [
        "fat-tree-4: 8 racks, 16 hosts, 20 packet switches",
        "core3",
        "agg1-0",
        "edge3-1",
        "16 links of 1Gb/s",
        "OCS 0",
        ">r7<",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let mut t = shipped("hybrid-8x2");
    t.links.uplink.buffer = Some(crate::units::Bytes(50_000));
    let text = sheet(&t).unwrap().svg();
    assert!(text.contains("buffer 50kB") && text.contains("8 links of"), "{text}");
    let many = Topology::uniform(
        "many",
        MAX_RACKS + 1,
        1,
        crate::units::BitRate(1),
        crate::units::BitRate(1),
        vec![],
    );
    assert!(sheet(&many).unwrap_err().contains("at most 256"));
}

#[test]
fn links_within_a_row_go_below_it() {
    let path = arc((0, 50), (160, 50));
    assert_eq!((path[0], path[16]), ((0, 50), (160, 50)));
    assert!(path[8].1 > 55);
}
