import Locks
import SystemPackage

/// The open stores of this process, one engine a directory: LMDB must not open a file twice, so two stores of one path
/// share an engine.
enum Registry: ProcessGlobal {
    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private enum Slot {
        /// A thread opens or closes the directory: others that want it wait.
        case busy
        case open(Engine, uses: Int)
    }

    private final class Slots {
        /// Held for the look at a slot only, never while a store is opened or closed: one that takes long holds up only
        /// those who want the same.
        let monitor = Monitor()
        /// Touched only under `monitor`.
        var all: [Identity: Slot] = [:]
    }

    // SAFETY: written only in a child of fork(2), by its only thread.
    nonisolated(unsafe) private static var slots = Slots()

    static func prepare() { _ = slots }

    static func rehearse() {
        var other = Slots()
        replace(&other, with: Slots()).release()
    }

    static func beginAgain() { replace(&slots, with: Slots()) }

    /// The number that stands for the first store of an engine among those that share it.
    static let firstHandle: UInt32 = 1

    /// The engine of `path`, opened now or shared, and the number of the store among those that share it. Throws
    /// `locked` if it is open with settings that all its stores share, and other ones (read-only or not among them).
    /// - Parameter lock: the directory, locked already.
    static func acquire(
        _ path: FilePath, _ configuration: Configuration, lock: OwnedDescriptor? = nil
    ) throws -> (Engine, UInt32) {
        try configuration.validate()
        // By the directory and not by its name, of which it may have several; so it has to be there.
        if !configuration.isReadOnly { try Creation.makeRoot(path) }
        guard let identity = try identity(of: path) else { throw Opening.noStore(at: path) }
        guard let engine = claim(identity) else {
            var opened: Engine?
            defer { settle(identity, opened.map { .open($0, uses: 1) }) }
            let engine = try Opening.open(path, configuration, lock: lock)
            guard try self.identity(of: engine.files.root) == identity else {
                try? engine.close()
                throw LarderError(.io, "\(path) was replaced while it was opened: open it again", path: path)
            }
            opened = engine
            return (engine, firstHandle)
        }
        do {
            try share(engine, path, configuration)
            return (engine, engine.context.audience.join(configuration))
        } catch {
            try release(engine, nil)
            throw error
        }
    }

    /// The engine of a directory that is open, with one more use; nil if it is not, and then the slot is the caller's
    /// to settle.
    private static func claim(_ identity: Identity) -> Engine? {
        let slots = slots
        return slots.monitor.locked {
            while true {
                switch slots.all[identity] {
                case .busy?:
                    slots.monitor.wait()
                case .open(let engine, let uses)?:
                    slots.all[identity] = .open(engine, uses: uses + 1)
                    return engine
                case nil:
                    slots.all[identity] = .busy
                    return nil
                }
            }
        }
    }

    private static func settle(_ identity: Identity, _ slot: Slot?) {
        let slots = slots
        slots.monitor.locked {
            slots.all[identity] = slot
            slots.monitor.signal()
        }
    }

    /// What an open asks for in addition to settings is done at every open.
    private static func share(_ engine: Engine, _ path: FilePath, _ configuration: Configuration) throws {
        try configuration.requireSharable(with: engine.configuration, path)
        try StoreKey.require(configuration.encryption, of: engine.files)
        try DirectoryTrust.requirePrivate(engine.files.root, configuration)
        if configuration.indexCheck == .always { try engine.context.checkPages(.heads) }
        if let budget = configuration.budget { try engine.adopt(budget) }
    }

    /// Gives an engine back; the last user closes it. Throws what the relaxed changes of the store `handle` could not.
    static func release(_ engine: Engine, _ handle: UInt32?) throws {
        let slots = slots
        let last = slots.monitor.locked { () -> (identity: Identity?, isLast: Bool) in
            for (identity, slot) in slots.all {
                guard case .open(let other, let uses) = slot, other === engine else { continue }
                if uses > 1 {
                    slots.all[identity] = .open(engine, uses: uses - 1)
                    return (nil, false)
                }
                slots.all[identity] = .busy
                return (identity, true)
            }
            return (nil, true)
        }
        guard last.isLast else {
            engine.commitPending()
            guard let handle else { return }
            engine.context.audience.leave(handle)
            try engine.writing?.submission.throwFailure(of: handle)
            return
        }
        defer { if let identity = last.identity { settle(identity, nil) } }
        try engine.close()
    }

    private static func identity(of directory: Directory) throws(LarderError) -> Identity {
        let status = try FileSystem.status(directory.descriptor, path: directory.path)
        return Identity(device: status.device, inode: status.inode)
    }

    private static func identity(of path: FilePath) throws(LarderError) -> Identity? {
        try FileSystem.status(path: path).map { Identity(device: $0.device, inode: $0.inode) }
    }
}
