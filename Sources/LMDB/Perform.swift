import CLMDB
import Failpoints

/// Makes an LMDB call, unless it is made to fail instead; returns its code.
@inline(__always)
func perform(_ function: StaticString, _ environment: @autoclosure () -> OpaquePointer?, _ call: () -> Int32) -> Int32 {
    if case .failure(let code)? = injectedFault(function, at: path(of: environment())) { return code }
    return call()
}

/// As above, in a transaction.
@inline(__always)
func perform(_ function: StaticString, in transaction: OpaquePointer, _ call: () -> Int32) -> Int32 {
    perform(function, mdb_txn_env(transaction), call)
}

/// As above, for a known path.
@inline(__always)
func perform(_ function: StaticString, at path: @autoclosure () -> String, _ call: () -> Int32) -> Int32 {
    if case .failure(let code)? = injectedFault(function, at: path()) { return code }
    return call()
}

/// The directory of an environment. `mdb_env_get_path`.
func path(of environment: OpaquePointer?) -> String {
    var path: UnsafePointer<CChar>?
    guard mdb_env_get_path(environment, &path) == MDB_SUCCESS, let path else { return "" }
    return String(cString: path)
}
