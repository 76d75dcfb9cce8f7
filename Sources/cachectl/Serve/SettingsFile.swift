import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The settings of `serve` as a JSON file has them: the flags' names in camel case; all may be missing.
///
///     {"origin": ["http://127.0.0.1:9000"], "listen": "127.0.0.1:8080", "budget": "10GB", "accessLog": "-"}
struct SettingsFile {
    private let members: [String: Member]

    /// Reads a file. Throws `data`, with path, line and name, for what is not JSON, not a setting, or not a value of it.
    init(_ path: FilePath) throws {
        let bytes = try FileInput.bytes(of: path)
        let outline = JSONOutline(bytes)
        func refusal(_ text: String, line: Int?) -> CommandError {
            CommandError(.data, "\(path)\(line.map { ", line \($0)" } ?? ""): \(text)", path: path)
        }
        if let fault = outline.fault { throw refusal("this is not JSON at column \(fault.column)", line: fault.line) }
        do {
            members = try JSONDecoder().decode([String: Member].self, from: Data(bytes))
        } catch let error as DecodingError {
            let name = Self.name(in: error)
            throw refusal(
                name.map { "'\($0)': give a string, a number, true, false or a list of these" }
                    ?? "the settings have to be one object, {...}", line: name.flatMap { outline.lines[$0] } ?? 1)
        }
        for (name, member) in members.sorted(by: { $0.key < $1.key }) {
            guard Self.names.contains(name) else {
                throw refusal(
                    "'\(name)' is not a setting; there are \(Self.names.sorted().joined(separator: ", "))",
                    line: outline.lines[name])
            }
            do {
                _ = try ServeCommand.parse(member.arguments(for: name))
            } catch {
                throw refusal("'\(name)': \(ServeCommand.message(for: error))", line: outline.lines[name])
            }
        }
    }

    /// The settings as flags.
    /// - Parameter isOverridden: settings of several values that the command line has, which are left out; of others the
    ///   last value counts.
    func arguments(without isOverridden: (String) -> Bool) -> [String] {
        members.sorted { $0.key < $1.key }.filter { !isOverridden($0.key) }.flatMap { $0.value.arguments(for: $0.key) }
    }

    /// The byte budget; nil if the file has none.
    func budget() throws -> ByteCount? {
        try members["budget"].flatMap { try ServeCommand.parse($0.arguments(for: "budget")).settings.budget }
    }

    /// The names of the settings that the other file has with another value, or that one of the two lacks.
    func changes(to other: SettingsFile) -> [String] {
        Set(members.keys).union(other.members.keys).filter { members[$0] != other.members[$0] }.sorted()
    }

    /// The names there are: the properties of `ServeSettings`, and those of every command.
    private static let names: Set<String> = {
        func properties(of value: Any) -> [String] {
            Mirror(reflecting: value).children.compactMap { $0.label.map { String($0.drop { $0 == "_" }) } }
        }
        return Set(properties(of: ServeSettings()) + properties(of: StoreOptions()))
    }()

    /// A value of a setting.
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

        /// `accessLog` with a value is `--access-log=value`, `http2` with false is `--no-http2`. Capitals in a row are
        /// one word: `originHTTP2` is `--origin-http2`.
        func arguments(for name: String) -> [String] {
            var (flag, wasUpper) = ("", false)
            for character in name {
                if character.isUppercase, !wasUpper { flag += "-" }
                flag += character.lowercased()
                wasUpper = character.isUppercase
            }
            switch self {
            case .flag(let isOn):
                // These two have no opposite, as false is what they are without.
                if ["json", "anyOwner"].contains(name), !isOn { return [] }
                return [(isOn ? "--" : "--no-") + flag]
            case .values(let values): return values.map { "--\(flag)=\($0)" }
            }
        }
    }

    /// A string, or a number as it would be typed.
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

    /// The setting with a value that no setting can have.
    private static func name(in error: DecodingError) -> String? {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context),
            .keyNotFound(_, let context):
            context.codingPath.first?.stringValue
        @unknown default: nil
        }
    }
}
