import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The settings of `serve` from a JSON file: the names of the flags in camel case, all optional.
///
///     {"origin": ["http://127.0.0.1:9000"], "listen": "127.0.0.1:8080", "budget": "10GB", "accessLog": "-"}
struct SettingsFile {
    private let members: [String: Member]

    /// Reads a file.
    /// - Throws: `data`, with path, line and name, for invalid JSON, an unknown setting or an invalid value.
    init(_ path: FilePath) throws {
        let bytes = try FileInput.bytes(of: path)
        let outline = JSONOutline(bytes)
        func refusal(_ text: String, line: Int?) -> CommandError {
            CommandError(.data, "\(path)\(line.map { ", line \($0)" } ?? ""): \(text)", path: path)
        }
        if let fault = outline.fault { throw refusal("invalid JSON at column \(fault.column)", line: fault.line) }
        do {
            members = try JSONDecoder().decode([String: Member].self, from: Data(bytes))
        } catch let error as DecodingError {
            let name = Self.name(in: error)
            throw refusal(
                name.map { "'\($0)': use a string, a number, true, false or a list of these" }
                    ?? "the settings must be one object, {...}", line: name.flatMap { outline.lines[$0] } ?? 1)
        }
        if let (name, line) = outline.repeated { throw refusal("'\(name)' is given twice", line: line) }
        for (name, member) in members.sorted(by: { $0.key < $1.key }) {
            guard Self.names.contains(name) else {
                throw refusal(
                    "'\(name)' is not a setting. Use \(Self.names.sorted().joined(separator: ", "))",
                    line: outline.lines[name])
            }
            if let expected = member.expectation(for: name) {
                throw refusal("'\(name)': \(expected)", line: outline.lines[name])
            }
            do {
                _ = try ServeCommand.parse(member.arguments(for: name))
            } catch {
                throw refusal("'\(name)': \(ServeCommand.message(for: error))", line: outline.lines[name])
            }
        }
    }

    /// The settings as flags.
    /// - Parameter isOverridden: repeatable settings that the command line gives, which are left out. For the others
    ///   the last value counts anyway.
    func arguments(without isOverridden: (String) -> Bool) -> [String] {
        members.sorted { $0.key < $1.key }.filter { !isOverridden($0.key) }.flatMap { $0.value.arguments(for: $0.key) }
    }

    /// The byte budget; nil if the file has none.
    func budget() throws -> ByteCount? {
        try settings(named: "budget")?.server.budget
    }

    /// The settings with one of the file's alone; nil if the file does not have it.
    func settings(named name: String) throws -> ServeSettings? {
        try members[name].map { try ServeCommand.parse($0.arguments(for: name)).settings }
    }

    /// The names of the settings that differ between the two files.
    func changes(to other: SettingsFile) -> [String] {
        Set(members.keys).union(other.members.keys).filter { members[$0] != other.members[$0] }.sorted()
    }

    /// The names of all settings: the properties of `ServeSettings`, `ServerSettings`, `StoreOptions` and `StoreFlags`.
    private static let names: Set<String> = {
        func properties(of value: Any) -> [String] {
            Mirror(reflecting: value).children.compactMap { $0.label.map { String($0.drop { $0 == "_" }) } }
        }
        let options = properties(of: StoreOptions()) + properties(of: StoreFlags())
        let settings = properties(of: ServeSettings()) + properties(of: ServerSettings())
        // Groups of flags are properties without being settings.
        return Set(settings + options).subtracting(["flags", "server"])
    }()

    /// Whether a setting is true or false: its flag takes no value.
    private static func isFlag(_ name: String) -> Bool {
        (try? ServeCommand.parse(Member.flag(true).arguments(for: name))) != nil
    }

    /// The value of a setting.
    private enum Member: Decodable, Equatable {
        case flag(Bool)
        case values([String])

        init(from decoder: any Decoder) throws {
            if var list = try? decoder.unkeyedContainer() {
                var values: [String] = []
                while !list.isAtEnd { values.append(try list.decode(Scalar.self).text) }
                self = .values(values)
            } else if let flag = try? decoder.singleValueContainer().decode(Bool.self) {
                self = .flag(flag)
            } else {
                self = .values([try Scalar(from: decoder).text])
            }
        }

        /// What to write instead, if the setting takes no such value.
        func expectation(for name: String) -> String? {
            switch self {
            case .flag: SettingsFile.isFlag(name) ? nil : "use a string, a number or a list of these"
            case .values: SettingsFile.isFlag(name) ? "use true or false" : nil
            }
        }

        /// `accessLog` with a value becomes `--access-log=value`, `http2` with false becomes `--no-http2`. Capitals in
        /// a row are one word: `originHTTP2` becomes `--origin-http2`.
        func arguments(for name: String) -> [String] {
            var (flag, wasUpper) = ("", false)
            for character in name {
                if character.isUppercase, !wasUpper { flag += "-" }
                flag += character.lowercased()
                wasUpper = character.isUppercase
            }
            switch self {
            case .flag(let isOn):
                // These two flags have no `--no-` form: false is their default.
                if ["json", "anyOwner"].contains(name), !isOn { return [] }
                return [(isOn ? "--" : "--no-") + flag]
            case .values(let values): return values.map { "--\(flag)=\($0)" }
            }
        }
    }

    /// A string, or a number as text.
    private struct Scalar: Decodable {
        let text: String

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let string = try? container.decode(String.self) {
                text = string
            } else if let number = try? container.decode(Int64.self) {
                text = "\(number)"
            } else {
                text = "\(try container.decode(Double.self))"
            }
        }
    }

    /// The setting with a value of the wrong type.
    private static func name(in error: DecodingError) -> String? {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context),
            .keyNotFound(_, let context):
            context.codingPath.first?.stringValue
        @unknown default: nil
        }
    }
}
