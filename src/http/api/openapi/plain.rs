//! The description in words that generators of clients understand, too; what is allowed stays the
//! same.

use serde_json::{Map, Value, json};

/// Rewrites tuples, records whose fields depend on their kind, and objects within the placement's
/// options.
pub fn rewrite(document: &mut Value) {
    tuples(document);
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut)
    else {
        return;
    };
    records(schemas);
    options(schemas);
}

/// A tuple by its length, where utoipa writes that nothing (`false`) may follow: generators want a
/// schema there.
fn tuples(v: &mut Value) {
    match v {
        Value::Object(m) => {
            if let Some(n) = m
                .get("prefixItems")
                .and_then(Value::as_array)
                .map(Vec::len)
                .filter(|_| m.get("items") == Some(&json!(false)))
            {
                m.remove("items");
                m.extend([("minItems".into(), n.into()), ("maxItems".into(), n.into())]);
            }
            m.values_mut().for_each(tuples);
        }
        Value::Array(a) => a.iter_mut().for_each(tuples),
        _ => {}
    }
}

/// A line of the event log as one object a kind of event, with a name each, where utoipa joins
/// (`allOf`) the kinds with what all have.
fn records(schemas: &mut Map<String, Value>) {
    let Some([Value::Object(kinds), common]) =
        schemas.get("Record").and_then(|r| r["allOf"].as_array()).map(Vec::as_slice)
    else {
        return;
    };
    let Some(name) = kinds
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|r| r.rsplit('/').next())
        .map(str::to_owned)
    else {
        return;
    };
    let common = common.clone();
    let Some(mut kinds) = schemas.remove(&name) else { return };
    for kind in kinds["oneOf"].as_array_mut().into_iter().flatten() {
        let event = kind["properties"]["event"]["enum"][0].as_str().unwrap_or_default();
        kind["title"] = format!("record-{event}").into();
        if let (Some(own), Some(all)) =
            (kind["properties"].as_object_mut(), common["properties"].as_object())
        {
            own.extend(all.clone());
        }
        if let (Some(own), Some(all)) =
            (kind["required"].as_array_mut(), common["required"].as_array())
        {
            own.extend(all.iter().cloned());
        }
    }
    schemas["Record"] =
        json!({"description": schemas["Record"]["description"], "oneOf": kinds["oneOf"]});
}

/// Objects within a placement policy's options as schemas of their own: generators make one class
/// of each, and want a name for it.
fn options(schemas: &mut Map<String, Value>) {
    let mut named = vec![];
    for policy in schemas
        .get_mut("RawPlacement")
        .and_then(|p| p["oneOf"].as_array_mut())
        .into_iter()
        .flatten()
    {
        let title = capital(policy["title"].as_str().unwrap_or_default());
        for (key, option) in policy["properties"]
            .as_object_mut()
            .into_iter()
            .flatten()
            .filter(|(_, o)| o["properties"].is_object())
        {
            let name = format!("{title}{}Options", capital(key));
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            named.push((name, std::mem::replace(option, reference)));
        }
    }
    schemas.extend(named);
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
