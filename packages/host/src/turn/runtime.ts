// What threads need of the host that they belong to.
import type { RegistrationAction, ServerDefinition } from '../config/index.ts'
import type { TrustPolicy } from '../elicitation/index.ts'
import type { HostEvent } from '../events/index.ts'
import type { ContributorCalls, ExtensionMetrics, ExtensionStore, ResourceClient } from '../extensions/index.ts'
import type { Binding, CaptureRequest } from '../set/index.ts'

/** The host, as its threads see it. */
export interface ThreadRuntime {
  readonly calls: ContributorCalls
  readonly session: ExtensionStore
  readonly resources: ResourceClient
  readonly metrics: ExtensionMetrics
  /** Who the host is signed in as, compared with `===`. */
  authKey(): object | undefined
  bind(request: CaptureRequest): Promise<Binding>
  /**
   * What a thread contributes from now on; servers are published anew if that changes anything, or if `reconnect` asks for it. Waits for no server.
   * @throws {HostError} `HOST_CLOSED`, `CANCELLED`; nothing has changed then.
   */
  contribute(
    thread: string,
    registrations: readonly RegistrationAction[],
    options: { readonly reconnect: boolean; readonly signal?: AbortSignal | undefined },
  ): Promise<void>
  /** Forgets a thread. Never rejects. */
  withdraw(thread: string): Promise<void>
  /** Is the server there for this thread, and not only for another one? */
  sees(thread: string, server: string): boolean
  definition(server: string): ServerDefinition | undefined
  trust(server: string): TrustPolicy
  emit(event: HostEvent): void
  now(): number
  /** 128 bits, in hexadecimal. */
  randomId(): string
}
