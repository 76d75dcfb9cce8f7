import ArgumentParser
import CachectlCore
import HTTPTypes
import Larder
import LarderHTTP

/// Which response of a URL a command uses.
struct ResponseOptions: ParsableArguments {
    @Option(help: ArgumentHelp("If the URL has several variants, use the one with this number.", valueName: "n"))
    var variant: Int?

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp(
            "If the URL has several variants, use the one for a request with this field, 'Name: value'; repeatable.",
            valueName: "field"),
        transform: FieldArgument.parse)
    var headers: [HTTPField] = []

    @Flag(help: "Also accept an incomplete response.")
    var partial = false

    func validate() throws {
        if let variant, variant < 1 { throw ValidationError("--variant: \(variant) is out of range. Use 1 or more.") }
        if variant != nil, !headers.isEmpty { throw ValidationError("Give --variant or --header, not both.") }
    }

    /// The key of the entry that `key` selects: `key` itself, or the key of one variant.
    func entryKey(for key: Key, in store: Store, includingExpired: Bool) throws -> Key {
        let key = try StoredKeys.resolved(key, in: store)
        guard let entry = try store.attributes(of: key), let all = try StoredVariants(entry, in: store) else {
            if let variant, variant > 1 { throw CommandError.missing(key, "there is no variant \(variant) of \(key)") }
            return key
        }
        let now = store.now
        let usable = all.variants.filter { includingExpired || $0.entry.expires.map { $0 > now } ?? true }
        let request = HTTPFields(headers)
        let meant = usable.filter { candidate in
            variant.map { $0 == candidate.number } ?? (headers.isEmpty || candidate.response.isSelected(by: request))
        }
        if meant.count == 1 { return meant[0].entry.key }
        if meant.isEmpty, all.variants.isEmpty {
            throw CommandError.missing(key, "all variants of \(key) have been removed")
        }
        if meant.isEmpty, !includingExpired, usable.isEmpty {
            throw CommandError.expired(key, "all variants of \(key) have expired: use --expired to get one")
        }
        let text = meant.isEmpty ? "no variant of \(key) matches" : "\(key) has several variants"
        throw CommandError.severalVariants(
            key, "\(text): select one with --variant N or --header 'Name: value'" + Self.list(all.variants),
            isMissing: meant.isEmpty)
    }

    private static func list(_ variants: [StoredVariants.Variant]) -> String {
        var table = Table([.right, .right, .left], indent: "  ")
        for variant in variants.prefix(20) {
            table.add("\(variant.number)", "\(variant.entry.length)", variant.text)
        }
        let rest = variants.count > 20 ? "\n  ... and \(variants.count - 20) more" : ""
        return "\n" + table.text.dropLast() + rest
    }

    /// Throws `data` for an incomplete body, unless `--partial` is given.
    func requireComplete(_ entry: Attributes) throws {
        guard !partial, let response = ResponseSummary(entry), !response.isComplete else { return }
        let whole = response.totalBytes.map { "\(Render.count($0))" } ?? "an unknown number of"
        var error = CommandError(
            .data,
            "the response under \(entry.key) is incomplete: "
                + "\(Render.count(response.storedBytes ?? entry.length.bytes)) of \(whole) bytes are stored; use --partial to get them"
        )
        error.code = "incomplete"
        error.key = entry.key
        throw error
    }
}
