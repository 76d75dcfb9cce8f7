import Failpoints

extension FileSystem {
    /// Makes a system call, again as long as a signal interrupts it; in a debug build it may be made to fail instead.
    /// - Parameter place: the file or directory.
    @inline(__always)
    static func perform<N: FixedWidthInteger & SignedInteger>(
        _ name: StaticString, at place: @autoclosure () -> String, _ call: () -> N
    ) -> N {
        while true {
            if case .failure(let number)? = injectedFault(name, at: place()) {
                errno = number
                if number == EINTR { continue }
                return -1
            }
            let result = call()
            if result >= 0 || errno != EINTR { return result }
        }
    }

    /// As above, for a call on an open file.
    @inline(__always)
    static func perform<N: FixedWidthInteger & SignedInteger>(
        _ name: StaticString, on descriptor: Int32, _ call: () -> N
    ) -> N {
        while true {
            if case .failure(let number)? = injectedFault(name, on: descriptor) {
                errno = number
                if number == EINTR { continue }
                return -1
            }
            let result = call()
            if result >= 0 || errno != EINTR { return result }
        }
    }

    /// As above, for a call that transfers `count` bytes and may transfer fewer.
    @inline(__always)
    static func transfer(
        _ name: StaticString, on descriptor: OwnedDescriptor, _ count: Int, _ call: (Int) -> Int
    ) -> Int {
        while true {
            var count = count
            switch injectedFault(name, on: descriptor.raw) {
            case nil: break
            case .short?: count = max(1, count / 2)
            case .failure(let number)?:
                errno = number
                if number == EINTR { continue }
                return -1
            }
            let result = call(count)
            if result >= 0 || errno != EINTR { return result }
        }
    }
}
