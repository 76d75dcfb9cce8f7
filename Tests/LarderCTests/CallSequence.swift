import CLarderInterface
import LarderC

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A sequence of calls of the C interface, decoded from bytes: good, bad and repeated handles, lengths and structures.
/// `tools/fuzz calls` and `CallSequenceTests` feed it.
///
/// Pointers lead to memory of the length that is passed with them, or are NULL, as the header asks; everything else is
/// from the input.
struct CallSequence {
    /// Something that does not hold.
    struct Finding: Error, CustomStringConvertible {
        let description: String
    }

    private var input: ArraySlice<UInt8>
    /// Handles that calls returned, those that are over included, and a few that never were one.
    private var handles: [OpaquePointer?] = [nil, OpaquePointer(bitPattern: 0x11), OpaquePointer(bitPattern: UInt.max)]
    /// Those that have to be closed in the end.
    private var open: [(handle: OpaquePointer, close: (OpaquePointer?) -> larder_status)] = []
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 12, alignment: 16)

    /// Runs the calls of an input on the store in a directory.
    static func run(_ input: [UInt8], in path: String) throws {
        var sequence = CallSequence(input: input[...])
        defer { sequence.memory.deallocate() }
        var store: OpaquePointer?
        var options = larder_options()
        options.size = MemoryLayout<larder_options>.size
        options.budget_bytes = 4 << 20
        try require(larder_open(path, &options, &store) == LARDER_OK, "the store cannot be opened")
        sequence.note(store, larder_close)
        while let code = sequence.input.popFirst() { try sequence.call(code) }
        try sequence.end()
        // Whatever was called, the directory is a whole store.
        var again: OpaquePointer?
        var violations: UInt64 = 1
        try require(larder_open(path, &options, &again) == LARDER_OK, "the store cannot be opened again")
        try require(larder_check(again, 0, nil, nil, &violations, nil) == LARDER_OK, "the store cannot be checked")
        try require(violations == 0, "\(violations) violations")
        try require(larder_clear(again, nil) == LARDER_OK, "the store cannot be cleared")
        try require(larder_close(again) == LARDER_OK, "the store cannot be closed")
        try require(larder_close(again) == LARDER_CLOSED, "a store is closed twice")
    }

    private init(input: ArraySlice<UInt8>) { self.input = input }

    private static func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        if !condition { throw Finding(description: what()) }
    }

    // MARK: From the input

    private mutating func byte() -> Int { Int(input.popFirst() ?? 0) }

    private mutating func handle() -> OpaquePointer? { handles[byte() % handles.count] }

    /// A number that is small, or one of the edges.
    private mutating func number() -> UInt64 {
        let edges: [UInt64] = [.max, 1 << 63, 1 << 62, 1 << 53, 1 << 32, 70_000, 300_000, 0]
        let value = byte()
        return value >= 0xF8 ? edges[value - 0xF8] : UInt64(value)
    }

    /// Bytes, and the length to pass with them: that of the bytes, or with NULL any.
    private mutating func bytes() -> (bytes: [UInt8]?, count: Int) {
        let code = byte()
        switch code {
        case 0xF0: return (nil, 0)
        case 0xF1: return (nil, Int(truncatingIfNeeded: number()))
        case 0xF2: return ([UInt8](repeating: 7, count: 66_000), 66_000)
        case 0xF3: return ([UInt8](repeating: 8, count: 300_000), 300_000)
        case 0xF4: return ([1], -1)
        default:
            let bytes = Array(input.prefix(code % 40))
            input = input.dropFirst(bytes.count)
            return (bytes, bytes.count)
        }
    }

    /// A structure whose first member is its size, with members from the input.
    private mutating func structure<T>(_ value: T, _ members: (inout T, inout CallSequence) -> Void) {
        var value = value
        members(&value, &self)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        withUnsafeBytes(of: value) { memory.copyMemory(from: $0) }
        var size = UInt(MemoryLayout<T>.size)
        switch byte() {
        case 0xFF: size = UInt(truncatingIfNeeded: number())
        case 0xFE:
            size += 8
            memory[Int(size) - 1] = UInt8(byte())
        default: break
        }
        memory.storeBytes(of: size, as: UInt.self)
    }

    private mutating func note(_ handle: OpaquePointer?, _ close: @escaping (OpaquePointer?) -> larder_status) {
        guard let handle else { return }
        open.append((handle, close))
        if handles.count < 60 { handles.append(handle) }
    }

    // MARK: Calls

    private mutating func call(_ code: UInt8) throws {
        let status: larder_status
        switch code % 6 {
        case 0: status = try put()
        case 1: status = look()
        case 2: status = useBody(code / 6)
        case 3: status = change(code / 6)
        case 4: status = stream(code / 6)
        default: status = useStore(code / 6)
        }
        try Self.require(String(cString: larder_status_name(status)) != "UNKNOWN", "status \(status.rawValue)")
        try Self.require(status != LARDER_FAILED, "an error without a code: " + String(cString: larder_error_message()))
        if status.rawValue < 0 { try Self.require(larder_error_message().pointee != 0, "an error without a text") }
    }

    /// What was put is what is read.
    private mutating func put() throws -> larder_status {
        let (store, key, body) = (handle(), bytes(), bytes())
        var digest = [UInt8](repeating: 0, count: 32)
        let mode = byte()
        if mode % 3 > 0 {
            structure(larder_put_options()) { options, input in
                options.flags = UInt32(input.byte())
                options.lifetime = Int64(bitPattern: input.number())
                options.expires = Int64(bitPattern: input.number())
                options.reserved = UInt32(input.byte() / 255)
            }
        }
        let options = mode % 3 > 0 ? memory.assumingMemoryBound(to: larder_put_options.self).baseAddress : nil
        if mode % 3 == 2 {
            return larder_put_if_absent(store, key.bytes, key.count, body.bytes, body.count, options)
        }
        let status = larder_put(store, key.bytes, key.count, body.bytes, body.count, options, &digest)
        guard status == LARDER_OK, options == nil else { return status }
        let wanted = body.bytes ?? []
        var found = [UInt8](repeating: 0, count: wanted.count + 1)
        let count = found.count
        try found.withUnsafeMutableBytes { room in
            var buffer = larder_buffer(data: room.baseAddress, capacity: count, length: 0)
            let read = larder_read(store, key.bytes, key.count, 0, &buffer, nil)
            try Self.require(read == LARDER_OK && buffer.length == wanted.count, "what was put is not there: \(read)")
        }
        try Self.require(found.dropLast().elementsEqual(wanted), "other bytes are read than were put")
        return larder_contains_content(store, digest, digest.count)
    }

    private mutating func look() -> larder_status {
        let (store, key) = (handle(), bytes())
        var body: OpaquePointer?
        switch byte() % 3 {
        case 0:
            let status = larder_get(store, key.bytes, key.count, UInt32(byte()), &body)
            note(body, larder_body_release)
            return status
        case 1:
            let status = larder_get_content(store, key.bytes, key.count, &body)
            note(body, larder_body_release)
            return status
        default: return larder_contains(store, key.bytes, key.count)
        }
    }

    private mutating func useBody(_ code: UInt8) -> larder_status {
        let body = handle()
        var (start, length, number, count) = (UnsafeRawPointer?.none, 0, UInt64(0), 0)
        var (descriptor, offset) = (Int32(0), UInt64(0))
        switch code % 8 {
        case 0: return larder_body_bytes(body, &start, &length)
        case 1: return larder_body_metadata(body, &start, &length)
        case 2: return larder_body_length(body, &number)
        case 3: return larder_body_descriptor(body, &descriptor, &offset, &number)
        case 4: return larder_body_read(body, self.number(), memory.baseAddress, byte(), &count)
        case 5: return larder_body_digest(body, memory.baseAddress, byte())
        case 6: return larder_body_describe(body, { _, item in item.map { Int32($0.pointee.tag_count) } ?? 1 }, nil)
        default: return larder_body_release(body)
        }
    }

    private mutating func change(_ code: UInt8) -> larder_status {
        let (store, key) = (handle(), bytes())
        switch code % 6 {
        case 0: return larder_remove(store, key.bytes, key.count)
        case 1: return larder_touch(store, key.bytes, key.count, Int64(bitPattern: number()))
        case 2:
            structure(larder_entry_change()) { change, input in
                change.fields = UInt32(input.byte())
                change.lifetime = Int64(bitPattern: input.number())
            }
            let change = memory.assumingMemoryBound(to: larder_entry_change.self).baseAddress
            return larder_change(store, key.bytes, key.count, change)
        case 3: return larder_put_if_unchanged(store, handle(), key.bytes, key.count, nil)
        case 4: return larder_remove_if_unchanged(store, handle())
        default:
            let tag = (key.bytes ?? []).map { CChar(bitPattern: $0) } + [0]
            return byte() % 2 == 0 ? larder_pin_tag(store, tag, nil) : larder_unpin_tag(store, tag, nil)
        }
    }

    private mutating func stream(_ code: UInt8) -> larder_status {
        let (handle, key) = (handle(), bytes())
        var made: OpaquePointer?
        switch code % 8 {
        case 0:
            let status = larder_writer_open(handle, key.bytes, key.count, number(), nil, &made)
            note(made, larder_writer_cancel)
            return status
        case 1, 2: return larder_writer_write(handle, key.bytes, key.count)
        case 3: return larder_writer_commit(handle, nil)
        case 4:
            let status = larder_batch_create(&made)
            note(made, larder_batch_release)
            return status
        case 5: return larder_batch_put(handle, key.bytes, key.count, key.bytes, key.count, nil, Int32(byte() % 2))
        case 6: return larder_batch_remove(handle, key.bytes, key.count)
        default: return larder_batch_write(self.handle(), handle, 0, nil, 0)
        }
    }

    private mutating func useStore(_ code: UInt8) -> larder_status {
        let store = handle()
        switch code % 8 {
        case 0: return larder_flush(store, 0)
        case 1: return larder_close(store)
        case 2:
            structure(larder_statistics()) { _, _ in }
            return larder_get_statistics(store, memory.assumingMemoryBound(to: larder_statistics.self).baseAddress)
        case 3:
            structure(larder_budget()) { budget, input in
                (budget.bytes, budget.entries) = (input.number(), input.number())
                (budget.largest_entry, budget.free_disk_floor) = (input.number(), 0)
            }
            return larder_set_budget(store, memory.assumingMemoryBound(to: larder_budget.self).baseAddress)
        case 4, 5:
            structure(larder_selection()) { selection, input in
                selection.flags = UInt32(input.byte())
                (selection.at_least, selection.stored_before) = (input.number(), Int64(bitPattern: input.number()))
                selection.unused_since = Int64(bitPattern: input.number())
            }
            let selection = memory.assumingMemoryBound(to: larder_selection.self).baseAddress
            if code % 8 == 4 { return larder_remove_selected(store, selection, nil) }
            return larder_list(store, selection, { _, item in item.map { Int32($0.pointee.key_length % 2) } ?? 1 }, nil)
        case 6: return larder_collect(store, UInt32(byte()), nil, nil, nil)
        default: return larder_clear(store, nil)
        }
    }

    /// Every handle can be closed once.
    private mutating func end() throws {
        // Stores last: what they have pending is committed then.
        for (handle, close) in open.reversed() {
            let status = close(handle)
            try Self.require(status == LARDER_OK || status == LARDER_CLOSED, "a handle is not closed: \(status)")
            try Self.require(close(handle) == LARDER_CLOSED, "a handle is closed twice")
        }
    }
}
