import Larder

/// The names of the application versions that have put entries into a store.
package struct VersionNames {
    private let names: [ApplicationVersion: String]

    /// - Throws: `closed`, `io`.
    package init(of store: Store) throws {
        names = Dictionary(
            try store.applicationVersions().map { ($0.value, $0.key) }, uniquingKeysWith: { first, _ in first })
    }

    /// The name of a version; nil for none. A rebuilt index may have lost the name: then its number.
    package subscript(version: ApplicationVersion?) -> String? {
        version.map { names[$0] ?? "unknown (\($0.number))" }
    }
}
