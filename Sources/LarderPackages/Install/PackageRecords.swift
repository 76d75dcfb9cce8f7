import Larder
import LarderHTTP

/// The records of installed packages.
struct PackageRecords {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// The package of a name; nil if there is none.
    func package(_ name: String) throws -> InstalledPackage? {
        let entry = try store.get(PackageKeys.record(name), includingExpired: true)
        guard var package = try Installation.decode(InstalledPackage.self, entry) else { return nil }
        if package.state == .installed, package.mode == .whole {
            // Not a use of the package.
            let leader = try store.attributes(of: PackageKeys.leader(name))
            if leader?.metadata != StoredMember.installed { package.state = .displaced }
        }
        return package
    }

    /// All, by name.
    func all() throws -> [InstalledPackage] {
        try store.keys(.prefix(Key(PackageKeys.recordPrefix))).compactMap { key in
            try package(String(key.text.dropFirst(PackageKeys.recordPrefix.count)))
        }
    }

    func write(_ package: InstalledPackage) throws {
        try store.put(
            Installation.encode(package), for: PackageKeys.record(package.name), Installation.ownOptions())
        try store.flush()
    }
}
