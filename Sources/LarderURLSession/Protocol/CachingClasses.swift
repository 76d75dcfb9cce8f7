import Foundation
import LarderHTTP
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The protocol class of each configuration that has a cache.
///
/// A session makes its protocols from classes, and gives them no reference to itself: only the class can tell which
/// cache is meant. So each configuration gets a class of its own, made at run time: `NumberedProtocol` with a type for
/// the digits of a number.
enum CachingClasses {
    private struct State {
        var count: UInt32 = 0
        var caches: [ObjectIdentifier: URLSessionCaching] = [:]
    }

    private static let state = Mutex(State())

    /// Makes a class that loads through a cache.
    static func make(_ caching: URLSessionCaching) -> CachingURLProtocol.Type {
        state.withLock { state in
            state.count += 1
            let type = classNumbered(state.count, One.self)
            state.caches[ObjectIdentifier(type)] = caching
            return type
        }
    }

    static func caching(of type: CachingURLProtocol.Type) -> URLSessionCaching? {
        state.withLock { $0.caches[ObjectIdentifier(type)] }
    }

    /// The class stays, without a cache: it takes no request then.
    static func remove(_ type: CachingURLProtocol.Type) {
        state.withLock { $0.caches[ObjectIdentifier(type)] = nil }
    }

    private static func classNumbered<Digits>(_ rest: UInt32, _ digits: Digits.Type) -> CachingURLProtocol.Type {
        if rest == 0 { return NumberedProtocol<Digits>.self }
        return rest & 1 == 0
            ? classNumbered(rest >> 1, FollowedByZero<Digits>.self)
            : classNumbered(rest >> 1, FollowedByOne<Digits>.self)
    }

    private enum One {}
    private enum FollowedByZero<Digits> {}
    private enum FollowedByOne<Digits> {}

    private final class NumberedProtocol<Number>: CachingURLProtocol {}
}
