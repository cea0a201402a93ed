//! Texts in a language, from translations of programs' messages, which most machines have.

use std::fs;
use std::path::Path;

use anyhow::Result;

const LOCALES: &str = "/usr/share/locale";

/// Returns documents of at least `bytes` bytes in a language such as `de`, each made of the messages of one program;
/// none if no translations are installed.
pub fn documents(language: &str, bytes: usize) -> Result<Vec<String>> {
    let folder = Path::new(LOCALES).join(language).join("LC_MESSAGES");
    let mut documents = Vec::new();
    if !folder.exists() {
        return Ok(documents);
    }
    let files = fs::read_dir(folder)?.map(|file| Ok(file?.path()));
    let mut files = files.collect::<Result<Vec<_>>>()?;
    files.sort();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "mo"))
    {
        let mut document = String::new();
        for message in messages(&fs::read(file)?).unwrap_or_default() {
            document.push_str(&message.replace(['\n', '\0'], " "));
            document.push(' ');
            if document.len() >= bytes {
                documents.push(std::mem::take(&mut document));
            }
        }
    }
    Ok(documents)
}

/// Returns the translations in a catalog of GNU gettext ("The Format of GNU MO Files" in its manual), except the
/// first, which is a header. None if the catalog is damaged or has another encoding or byte order.
fn messages(catalog: &[u8]) -> Option<Vec<&str>> {
    let number = |at: usize| {
        let bytes = catalog.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    let [magic, count, translations] = [number(0)?, number(8)?, number(16)?];
    let message = |place: usize| {
        let entry = translations + 8 * place;
        let [len, start] = [number(entry)?, number(entry + 4)?];
        std::str::from_utf8(catalog.get(start..start + len)?).ok()
    };
    match magic {
        0x9504_12de => (1..count).map(message).collect(),
        _ => None,
    }
}
