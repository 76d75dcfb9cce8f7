import SystemPackage

extension Configuration {
    /// The settings that belong to the open directory, not to a single store, and that differ from those it was opened
    /// with.
    private func differences(from other: Configuration) -> [String] {
        var names: [String] = []
        func compare(_ isSame: Bool, _ name: String) { if !isSame { names.append(name) } }
        compare(verification == other.verification, "verification")
        compare(Self.isSame(clock, other.clock), "clock")
        compare(expiredRetention == other.expiredRetention, "expiredRetention")
        compare(commitDelay == other.commitDelay, "commitDelay")
        compare(pendingLimit == other.pendingLimit, "pendingLimit")
        compare(memoryLimit == other.memoryLimit, "memoryLimit")
        compare(keepsBodiesInMemory == other.keepsBodiesInMemory, "keepsBodiesInMemory")
        compare(memoryCountLimit == other.memoryCountLimit, "memoryCountLimit")
        compare(watermarks == other.watermarks, "watermarks")
        compare(indexMapSize == other.indexMapSize, "indexMapSize")
        compare(bootIdentity == other.bootIdentity, "bootIdentity")
        return names
    }

    /// Throws `locked` if a store of the path is open in this process with settings that conflict with those of this
    /// one.
    func requireSharable(with other: Configuration, _ path: FilePath) throws(LarderError) {
        if isReadOnly != other.isReadOnly {
            throw LarderError(
                .locked,
                "\(path) is open in this process \(isReadOnly ? "for writing" : "read-only"): "
                    + "use that store, or close it first",
                path: path)
        }
        let names = differences(from: other)
        if names.isEmpty { return }
        throw LarderError(
            .locked,
            "\(path) is open in this process with another configuration, and stores of one path share "
                + names.map { "`\($0)`" }.joined(separator: ", ")
                + ": open it with the same, use that store, or close it first",
            path: path)
    }

    /// True if both clocks are certainly the same: one object, equal values, or values of a type that has no fields.
    private static func isSame(_ first: any StoreClock, _ second: any StoreClock) -> Bool {
        guard type(of: first) == type(of: second) else { return false }
        if type(of: first) is AnyClass { return (first as AnyObject) === (second as AnyObject) }
        if let first = first as? any Equatable { return first.isEqual(to: second) }
        return isEmpty(first)
    }

    private static func isEmpty<C: StoreClock>(_ clock: C) -> Bool { MemoryLayout<C>.size == 0 }
}

extension Equatable {
    fileprivate func isEqual(to other: Any) -> Bool { (other as? Self) == self }
}
