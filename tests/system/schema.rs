//! The schema of result files, and whether a file is as it says.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A schema that was compiled.
pub struct Schema {
    all: boon::Schemas,
    top: boon::SchemaIndex,
    id: String,
}

impl Schema {
    /// What `heliostat check --schema result` prints.
    pub fn of_results() -> Self {
        let o = Command::new(env!("CARGO_BIN_EXE_heliostat"))
            .args(["check", "--schema", "result"])
            .output()
            .expect("the program starts");
        assert!(o.status.success(), "{o:?}");
        let (mut all, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        let schema: Value = serde_json::from_slice(&o.stdout).expect("JSON");
        let id = schema["$id"].as_str().expect("an id").to_owned();
        compiler.add_resource("result.json", schema).expect("a schema");
        let top = compiler.compile("result.json", &mut all).expect("a valid schema");
        Self { all, top, id }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Why a document is not as the schema says.
    pub fn refuses(&self, document: &Value) -> Option<String> {
        self.all.validate(document, self.top).err().map(|e| format!("{e:#}"))
    }

    /// The document of a file, which must be as the schema says.
    pub fn fits(&self, file: &Path) -> Value {
        let document =
            serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("JSON");
        assert_eq!(self.refuses(&document), None, "{}", file.display());
        document
    }
}
