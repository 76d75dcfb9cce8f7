/// An application version of a store: the number for the name in `Configuration.version`.
///
/// Comparable only within one store: another store may have another number for the name.
public struct ApplicationVersion: Sendable, Hashable, CustomStringConvertible {
    /// 1 ... 65,534.
    public let number: Int

    /// Nil for 0, which stands for no version.
    init?(_ number: UInt16) {
        if number == 0 { return nil }
        self.number = Int(number)
    }

    /// The number, as text.
    public var description: String { "\(number)" }
}

extension Store {
    /// The store's own application version, of `Configuration.version`. Nil: none, and the store sees entries of every
    /// version.
    public var applicationVersion: ApplicationVersion? { version.flatMap(ApplicationVersion.init) }

    /// The application versions that have used the store since it was cleared, by name.
    /// - Throws: `closed`, `io`.
    public func applicationVersions() throws -> [String: ApplicationVersion] {
        try requireOpen()
        return try engine.read { try engine.index.versions($0) }.compactMapValues(ApplicationVersion.init)
    }
}
