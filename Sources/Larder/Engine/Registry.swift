import Synchronization
import SystemPackage

/// The open stores of this process, one engine a directory: LMDB must not open a file twice, so two stores of one path
/// share an engine.
enum Registry {
    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private struct Slot {
        let engine: Engine
        var uses: Int
    }

    // Guards opening and closing too: a path that is being closed must not be opened again before it is.
    private static let monitor = Monitor()
    // SAFETY: touched only under `monitor`.
    nonisolated(unsafe) private static var slots: [Identity: Slot] = [:]

    /// The engine of `path`, opened now or shared. Throws `locked` if it is open in the other mode (read-only or not).
    static func acquire(_ path: FilePath, _ configuration: Configuration) throws -> Engine {
        try monitor.locked {
            if let identity = try identity(of: path), var slot = slots[identity] {
                try configuration.validate()
                guard configuration.isReadOnly == (slot.engine.writing == nil) else {
                    throw LarderError(
                        .locked,
                        "\(path) is open in this process \(configuration.isReadOnly ? "for writing" : "read-only"): "
                            + "use that store, or close it first",
                        path: path)
                }
                if let budget = configuration.budget { try slot.engine.set(budget) }
                slot.uses += 1
                slots[identity] = slot
                return slot.engine
            }
            let engine = try Engine.open(path, configuration)
            do {
                if let identity = try identity(of: path) { slots[identity] = Slot(engine: engine, uses: 1) }
            } catch {
                // Its threads hold no reference to it: they have to end before it goes.
                try? engine.close()
                throw error
            }
            return engine
        }
    }

    /// Gives an engine back; the last user closes it.
    static func release(_ engine: Engine) throws {
        try monitor.locked {
            guard let (identity, slot) = slots.first(where: { $0.value.engine === engine }) else {
                return try engine.close()
            }
            if slot.uses > 1 {
                slots[identity]?.uses -= 1
                return engine.commitPending()
            }
            slots[identity] = nil
            try engine.close()
        }
    }

    private static func identity(of path: FilePath) throws(LarderError) -> Identity? {
        try FileSystem.status(path: path).map { Identity(device: $0.device, inode: $0.inode) }
    }
}
