import Foundation
import Synchronization

/// The highest figures of a process during an attack: looked at every 50 ms.
final class Gauge: Sendable {
    struct Peak: Sendable {
        var memory = 0
        var descriptors = 0
    }

    private let state = Mutex(Peak())
    private let task: Mutex<Task<Void, Never>?> = Mutex(nil)

    func start(_ look: @escaping @Sendable () -> (memory: Int, descriptors: Int)?) {
        state.withLock { $0 = Peak() }
        let new = Task.detached { [self] in
            while !Task.isCancelled {
                if let usage = look() {
                    state.withLock { peak in
                        peak.memory = max(peak.memory, usage.memory)
                        peak.descriptors = max(peak.descriptors, usage.descriptors)
                    }
                }
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
        task.withLock { $0 = new }
    }

    func stop() -> Peak {
        task.withLock { $0?.cancel() }
        return state.withLock { $0 }
    }
}
