import Larder

// Calls of `perform` for `#expect`. Keep closures for `perform` out of the arguments of macros: Swift 6.3 may give such
// a closure the symbol of another one of the same type in the function, and run that one's body instead.
extension Store {
    /// `statistics()`, in a task.
    public func figures() async throws -> Statistics { try await perform { try $0.statistics() } }

    /// `keys(_:)`, in a task.
    public func listed(_ selection: Selection = .all) async throws -> [Key] {
        try await perform { try $0.keys(selection) }
    }

    /// `attributes(of:)`, in a task.
    public func details(of key: Key) async throws -> Attributes? { try await perform { try $0.attributes(of: key) } }

    /// `partialBody(of:)`, in a task.
    public func partial(_ key: Key) async throws -> PartialBody? { try await perform { try $0.partialBody(of: key) } }
}
