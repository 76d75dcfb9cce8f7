import Foundation

/// The markdown files of the repository, and what stands in them.
enum Documents {
    /// The root of the repository, two levels above this file's directory.
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The documents in the root, in `docs/` and in `docs/decisions/`, by their path from the root.
    static func all() throws -> [String] {
        func markdown(in folder: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(folder).path)
                .filter { $0.hasSuffix(".md") }
        }
        let folders = try ["docs", "docs/decisions"].flatMap { folder in
            try markdown(in: folder).map { folder + "/" + $0 }
        }
        return try (markdown(in: ".") + folders).sorted()
    }

    /// The articles and landing pages of the library products, by their path from the root.
    static func articles() throws -> [String] { try files("Sources", "md") }

    /// The files below a folder whose names end with `.` and `suffix`, by their path from the root.
    static func files(_ folder: String, _ suffix: String) throws -> [String] {
        let path = root.appendingPathComponent(folder).path
        let names = try FileManager.default.subpathsOfDirectory(atPath: path)
        return names.filter { $0.hasSuffix("." + suffix) }.map { folder + "/" + $0 }.sorted()
    }

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// The fenced blocks marked with `language`.
    static func blocks(of language: String, in text: String) -> [String] {
        var blocks: [String] = []
        var block: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let trimmed = line.drop { $0 == " " }
            if let lines = block {
                if trimmed.hasPrefix("```") {
                    blocks.append(lines.joined(separator: "\n"))
                    block = nil
                } else {
                    block = lines + [line]
                }
            } else if trimmed == "```" + language {
                block = []
            }
        }
        return blocks
    }

    /// Code without indentation, empty lines and imports.
    static func normalised(_ code: String) -> String {
        code.split(separator: "\n")
            .map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && !$0.hasPrefix("import ") }
            .joined(separator: "\n")
    }

    /// The targets of `[text](target)` outside code blocks.
    static func linkTargets(in text: String) -> [String] {
        var targets: [String] = []
        var isCode = false
        for line in text.split(separator: "\n") {
            if line.drop(while: { $0 == " " }).hasPrefix("```") { isCode.toggle() }
            if isCode { continue }
            for part in line.components(separatedBy: "](").dropFirst() {
                if let end = part.firstIndex(of: ")") { targets.append(String(part[..<end])) }
            }
        }
        return targets
    }

    /// The bytes of the block of `docs/format.md` marked with a name: lines of `offset  hex bytes  |text|`.
    static func hexDump(_ name: String) throws -> [UInt8] {
        let blocks = blocks(of: "hex " + name, in: try text("docs/format.md"))
        let lines = blocks.first?.split(separator: "\n") ?? []
        return lines.flatMap { line in
            line.prefix { $0 != "|" }.split(separator: " ").dropFirst().compactMap { UInt8($0, radix: 16) }
        }
    }
}
