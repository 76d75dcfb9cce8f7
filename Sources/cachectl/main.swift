import Larder
import SystemPackage
let path = FilePath(CommandLine.arguments[1])
let store = try Store(at: path, Configuration(budget: Budget(bytes: .mebibytes(64))))
func body(_ n: Int) -> [UInt8] {
    var rng = SystemRandomNumberGenerator(); var b = [UInt8](repeating: 0, count: n);
    for i in stride(from: 0, to: n, by: 8) {
        let v = rng.next(); for j in 0..<min(8, n - i) { b[i + j] = UInt8(truncatingIfNeeded: v >> (8 * UInt64(j))) }
    }; return b
}
let clock = ContinuousClock()
let small = (0..<256).map { _ in body(1024) }
print(
    "put 20000 x 1KiB:",
    try clock.measure {
        for i in 0..<20000 {
            var b = small[i & 255]; b[0] = UInt8(i & 255); b[1] = UInt8(i >> 8 & 255);
            try store.put(b, for: Key("k\(i)"))
        }; try store.flush()
    })
var hits = 0
print(
    "get 20000:", try clock.measure { for i in 0..<20000 { if try store.get(Key("k\(i)")) != nil { hits += 1 } } }, hits
)
print(try store.statistics())
let mid = (0..<64).map { _ in body(16384) }
print(
    "put 10000 x 16KiB:",
    try clock.measure {
        for i in 0..<10000 {
            var b = mid[i & 63]; b[0] = UInt8(i & 255); b[1] = UInt8(i >> 8 & 255); try store.put(b, for: Key("m\(i)"))
        }; try store.flush()
    })
print(try store.statistics())
let big = body(1 << 20)
print(
    "put 200 x 1MiB:",
    try clock.measure {
        for i in 0..<200 { var b = big; b[0] = UInt8(i & 255); try store.put(b, for: Key("b\(i)")) }; try store.flush()
    })
print(try store.statistics())
print("gc", try store.collect(compact: true))
print(try store.statistics())
try store.close()
