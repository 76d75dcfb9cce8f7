import Larder
import LarderHTTP

/// A broken invariant of the packages of a store.
public struct PackageViolation: Sendable, Hashable, CustomStringConvertible {
    /// What holds for the packages of every store.
    public enum Invariant: String, Sendable, CaseIterable {
        /// Every line of the table of packages can be read, and each name and each generation is there once.
        case table
        /// A generation that has entries has its row: by it, what no package names is found and removed.
        case row
        /// An installed package has its list of members.
        case list
        /// Members of modes `pin` and `whole` are pinned as long as their owner is there; that of mode `pin` is.
        case pin
    }

    /// The invariant.
    public let invariant: Invariant
    /// What was found.
    public let message: String
    /// True if it was repaired.
    public internal(set) var isRepaired = false

    /// The invariant, the message, and if it was repaired.
    public var description: String { "package \(invariant.rawValue): \(message)" + (isRepaired ? " (repaired)" : "") }
}

/// Compares the packages of a store with their invariants.
struct PackageCheck {
    let store: Store
    private(set) var violations: [PackageViolation] = []
    private var repairs: [Int: () throws -> Void] = [:]

    init(_ store: Store) throws {
        self.store = store
        let rows = try PackageTable(in: store).rows
        let packages = try PackageRecords(store).all()
        if try !PackageRecords(store).areReadable() || Set(rows.map(\.generation)).count < rows.count
            || Set(packages.map(\.name)).count < packages.count
        {
            let good = packages
            add(.table, "a line cannot be read, or a package is there twice") { [store] in
                try PackageRecords(store).replace(good, isRepair: true)
            }
        }
        try checkGenerations()
        for package in packages { try check(package) }
    }

    private mutating func add(_ invariant: PackageViolation.Invariant, _ message: String, repair: (() throws -> Void)?)
    {
        repairs[violations.count] = repair
        violations.append(PackageViolation(invariant: invariant, message: message))
    }

    private mutating func checkGenerations() throws {
        var last = ""
        var found: [String] = []
        try store.forEach(.prefix("larder:p ")) { entry in
            try Cancellation.check()
            guard let generation = PackageKeys.generation(of: entry.key), generation != last,
                entry.version == store.applicationVersion
            else { return }
            last = generation
            found.append(generation)
        }
        for generation in Set(found).sorted() where try store.attributes(of: PackageKeys.row(generation)) == nil {
            add(.row, "generation \(generation) has entries, but no row") { [store] in
                try store.put([], for: PackageKeys.row(generation), PackageRecords.options)
            }
        }
    }

    private mutating func check(_ package: InstalledPackage) throws {
        let (store, id) = (store, package.id)
        if try store.attributes(of: PackageKeys.row(id)) == nil,
            !violations.contains(where: { $0.message.contains(id) })
        {
            add(.row, "package '\(package.name)' has no row of its generation") {
                try store.put([], for: PackageKeys.row(id), PackageRecords.options)
            }
        }
        if package.state == .installed, try store.attributes(of: PackageKeys.list(id)) == nil {
            add(.list, "package '\(package.name)' has no list of members: install it again", repair: nil)
        }
        if package.mode == .members || package.state != .installed { return }
        let isPinned = try store.pinnedTags().contains(PackageKeys.tag(id))
        let hasOwner = try store.attributes(of: PackageKeys.owner(id)) != nil
        if isPinned, hasOwner { return }
        add(.pin, "members of package '\(package.name)' are not kept from displacement") {
            try store.put([], for: PackageKeys.owner(id), PackageRecords.ownerOptions(package.mode))
            try store.pin(reservedTag: PackageKeys.tag(id), while: PackageKeys.owner(id))
        }
    }

    /// Repairs what can be repaired; call it while no one else changes packages.
    mutating func repair() throws {
        for (position, repair) in repairs {
            try repair()
            violations[position].isRepaired = true
        }
        try store.flush()
    }
}

extension PackageStore {
    /// Compares the packages with their invariants: what a process was about to install or remove when it was killed
    /// breaks none of them.
    ///
    /// - Parameter repairs: repairs what it finds, but for a lost list of members. Default: false.
    /// - Returns: the broken invariants; empty if all is well.
    /// - Throws: `LarderError` of the store; ``PackageError/Code/busy`` if it repairs.
    public func check(repairs: Bool = false) async throws -> [PackageViolation] {
        if repairs {
            return try await alone { store in
                var check = try PackageCheck(store)
                try check.repair()
                return check.violations
            }
        }
        return try await withStore { store, _ in
            // What another process changes meanwhile is looked at again.
            for _ in 0..<3 {
                let table = try PackageTable(in: store)
                let found = try PackageCheck(store).violations
                if try found.isEmpty || PackageTable(in: store) == table { return found }
            }
            return []
        }
    }
}
