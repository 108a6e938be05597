//! Demand matrices from files: CSV, JSON, or the binary `.dm` form.
//!
//! | form | looks like |
//! |---|---|
//! | CSV | a row a line, cells by `,`, `;` or tab; empty lines and lines that begin with `#` are skipped |
//! | JSON | `[[0, 5], [7, 0]]`, or an object with such rows as `demand_bytes` (what `heliostat show demand -o json` prints) |
//! | binary | R as u32, then `R * R` cells as u64, row by row, all little-endian |
//!
//! Row = sending rack, column = receiving rack. A cell is a number of bytes, or in text a quantity
//! such as `2.5GB`. The diagonal is zero: what a rack sends to itself never crosses the network.

use super::error::{ConfigError, PathStep};
use super::yaml;
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::units::Bytes;

/// The most racks of a matrix.
pub const MAX_RACKS: usize = 4096;
/// The most bytes of a file that is read: those racks as text, 23 characters a cell.
pub const MAX_BYTES: u64 = 400_000_000;

/// Reads a matrix of any form, told apart by content; `file` is the name that errors show. O(R^2).
///
/// # Errors
/// What is wrong with the file, where, and what is allowed.
pub fn read(content: &[u8], file: &str) -> Result<DemandMatrix, ConfigError> {
    // Text has no zero byte, and the binary form's first four bytes always hold one.
    if content.contains(&0) {
        return binary(content).map_err(|why| ConfigError::at("", file, (0, 0), why, BINARY));
    }
    let text = std::str::from_utf8(content).map_err(|e| {
        let before = String::from_utf8_lossy(&content[..e.valid_up_to()]);
        let place = (
            before.matches('\n').count() + 1,
            before.chars().rev().take_while(|&c| c != '\n').count() + 1,
        );
        ConfigError::at(&before, file, place, "this is not UTF-8", "")
    })?;
    match text.trim_start().chars().next() {
        Some('[' | '{') => json(text, file),
        _ => csv(text, file),
    }
}

const BINARY: &str =
    "R as a little-endian u32, then R * R cells as little-endian u64, the diagonal zero";

fn binary(content: &[u8]) -> Result<DemandMatrix, String> {
    let (head, cells) = content
        .split_at_checked(4)
        .ok_or_else(|| format!("a binary matrix of {} bytes", content.len()))?;
    let racks = u32::from_le_bytes(head.try_into().expect("four bytes")) as usize;
    if racks > MAX_RACKS {
        return Err(format!("a binary matrix of {racks} racks; at most {MAX_RACKS}"));
    }
    if cells.len() != 8 * racks * racks {
        return Err(format!(
            "a binary matrix of {racks} racks has {} bytes, not {}",
            4 + 8 * racks * racks,
            content.len()
        ));
    }
    let mut m = DemandMatrix::zero(racks);
    for (k, c) in cells.chunks_exact(8).enumerate() {
        let bytes = u64::from_le_bytes(c.try_into().expect("eight bytes"));
        let (i, j) = (k / racks, k % racks);
        if i == j && bytes > 0 {
            return Err(format!("rack {i} sends {bytes} bytes to itself (at byte {})", 4 + 8 * k));
        }
        m.set(RackId::from(i), RackId::from(j), bytes);
    }
    Ok(m)
}

/// What is wrong in a text, and where: line and column from 1.
type TextFault = ((usize, usize), String, &'static str);

const CELL: &str = "a number of bytes, or a quantity such as 2.5GB";
const SQUARE: &str = "as many cells in every row as there are rows";
const DIAGONAL: &str = "0 on the diagonal: what a rack sends to itself never crosses the network";

fn csv(text: &str, file: &str) -> Result<DemandMatrix, ConfigError> {
    let fail = |(place, why, allowed): TextFault| ConfigError::at(text, file, place, why, allowed);
    let mut rows: Vec<(usize, Vec<(usize, u64)>)> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let mut column = 1;
        let mut row = Vec::new();
        for cell in line.split([',', ';', '\t']) {
            let at = column + cell.chars().take_while(|c| c.is_whitespace()).count();
            let bytes = bytes(cell.trim()).map_err(|why| fail(((n + 1, at), why, CELL)))?;
            row.push((at, bytes));
            column += cell.chars().count() + 1;
        }
        rows.push((n + 1, row));
    }
    square(&rows).map_err(fail)
}

fn bytes(cell: &str) -> Result<u64, String> {
    if !cell.is_empty() && cell.bytes().all(|b| b.is_ascii_digit()) {
        return cell.parse().map_err(|_| format!("{cell} is more than {} bytes", u64::MAX));
    }
    cell.parse::<Bytes>().map(|b| b.0).map_err(|e| e.to_string())
}

/// A square of rows with places, or the first place that makes it none.
fn square(rows: &[(usize, Vec<(usize, u64)>)]) -> Result<DemandMatrix, TextFault> {
    let racks = rows.len();
    if let Some((line, _)) = rows.get(MAX_RACKS) {
        return Err(((*line, 1), format!("more than {MAX_RACKS} rows"), "4096 racks at most"));
    }
    let mut m = DemandMatrix::zero(racks);
    for (i, (line, row)) in rows.iter().enumerate() {
        if row.len() != racks {
            let column = row.get(racks).or(row.last()).map_or(1, |c| c.0);
            return Err((
                (*line, column),
                format!("row {i} has {} cells, and there are {racks} rows", row.len()),
                SQUARE,
            ));
        }
        for (j, &(column, bytes)) in row.iter().enumerate() {
            if i == j && bytes > 0 {
                return Err((
                    (*line, column),
                    format!("rack {i} sends {bytes} bytes to itself"),
                    DIAGONAL,
                ));
            }
            m.set(RackId::from(i), RackId::from(j), bytes);
        }
    }
    Ok(m)
}

fn json(text: &str, file: &str) -> Result<DemandMatrix, ConfigError> {
    /// The answer of `/api/v1/demand`, of which only this is read.
    #[derive(serde::Deserialize)]
    struct Answer {
        demand_bytes: Vec<Vec<Bytes>>,
    }
    let wrapped = text.trim_start().starts_with('{');
    let parsed = if wrapped {
        serde_json::from_str::<Answer>(text).map(|a| a.demand_bytes)
    } else {
        serde_json::from_str(text)
    };
    let rows: Vec<Vec<Bytes>> = parsed.map_err(|e| {
        let said = e.to_string();
        let why = said.rsplit_once(" at line ").map_or(said.as_str(), |s| s.0);
        ConfigError::at(text, file, (e.line(), e.column()), why, "rows of cells: [[0, 5], [7, 0]]")
    })?;
    let plain: Vec<(usize, Vec<(usize, u64)>)> = rows
        .iter()
        .enumerate()
        .map(|(i, r)| (i, r.iter().enumerate().map(|(j, b)| (j, b.0)).collect()))
        .collect();
    square(&plain).map_err(|((row, column), why, allowed)| {
        // JSON is YAML: its reader finds the place of a cell.
        let mut path: Vec<PathStep> = if wrapped { vec!["demand_bytes".into()] } else { vec![] };
        path.extend([PathStep::Index(row), PathStep::Index(column)]);
        let place =
            (0..=path.len()).rev().find_map(|n| yaml::locate(text, &path[..n])).unwrap_or((0, 0));
        ConfigError::at(text, file, place, why, allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(content: &[u8]) -> String {
        read(content, "m").unwrap_err().to_string()
    }

    #[test]
    fn three_forms_of_one_matrix() {
        let m = DemandMatrix::from_rows(&[&[0, 2_500_000_000], &[7, 0]]);
        let mut dm = 2u32.to_le_bytes().to_vec();
        m.cells().iter().for_each(|c| dm.extend(c.to_le_bytes()));
        let texts = [
            "0,2.5GB\n7,0\n",
            "# racks\n0; 2500000000\r\n\n7B;0",
            " [[0,2500000000],[7,0]]",
            "{\"demand_bytes\":[[0,\"2.5GB\"],[7,0]]}",
        ];
        for content in texts.map(str::as_bytes).into_iter().chain([&dm[..]]) {
            assert_eq!(read(content, "m").unwrap(), m);
        }
        for nothing in ["", "# no racks\n", "[]"] {
            assert_eq!(read(nothing.as_bytes(), "m").unwrap().racks(), 0);
        }
    }

    #[test]
    fn errors_say_where() {
        let begins = |content: &[u8], start: &str| {
            assert!(said(content).starts_with(start), "{}", said(content))
        };
        begins(b"0,1\n2, x\n", "m:2:4: `x` is not an amount of data");
        begins(b"0,1\n2,0,3\n", "m:2:5: row 1 has 3 cells, and there are 2 rows");
        begins(b"0,1\n2,9\n", "m:2:3: rack 1 sends 9 bytes to itself");
        begins(b"0,99999999999999999999\n1,0\n", "m:1:3: 99999999999999999999 is more than");
        begins(b"[[0,1],[2,-1]]", "m:1:12: invalid value");
        begins(b"[[0,1],\n [2,9]]", "m:2:5: rack 1 sends 9 bytes to itself");
        begins(b"[[0,1],\n [2]]", "m:2:3: row 1 has 1 cells");
        begins(b"0,1\n\xff,0", "m:2:1: this is not UTF-8");
        begins(&[2, 0, 0, 0, 1], "m: a binary matrix of 2 racks has 36 bytes, not 5");
        begins(&[0, 0], "m: a binary matrix of 2 bytes");
        begins(&[0, 0, 0, 9], "m: a binary matrix of 150994944 racks");
        begins(
            &[&1u32.to_le_bytes()[..], &5u64.to_le_bytes()[..]].concat(),
            "m: rack 0 sends 5 bytes to itself (at byte 4)",
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn any_bytes_are_read_or_refused(content in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&content, "m").map_err(|e| e.to_string());
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{}0-9,;\t\n\" .a-zGB-]{0,60}") {
            let _ = read(text.as_bytes(), "m").map_err(|e| e.to_string());
        }

        #[test]
        fn what_is_written_is_read_back(r in 0usize..6, cells in prop::collection::vec(any::<u64>(), 36)) {
            let m = DemandMatrix::zero(r).map_pairs(|i, j, _| cells[i.index() * 6 + j.index()]);
            let rows: Vec<&[u64]> = (0..r).map(|i| m.row(RackId::from(i))).collect();
            let csv: String = rows.iter().map(|r| r.iter().map(u64::to_string).collect::<Vec<_>>().join(",") + "\n").collect();
            let mut dm = (r as u32).to_le_bytes().to_vec();
            m.cells().iter().for_each(|c| dm.extend(c.to_le_bytes()));
            for content in [csv.as_bytes(), serde_json::to_string(&rows).unwrap().as_bytes(), &dm] {
                prop_assert_eq!(&read(content, "m").unwrap(), &m);
            }
        }
    }
}
