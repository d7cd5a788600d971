// Capabilities and handlers of a host that has no policy: those of its handlers alone.
import type { JsonObject } from '../base/index.ts'
import type { ServerRequestHandler } from '../protocol/index.ts'
import { guarded, type HostHandlers } from './handlers.ts'

/** Capabilities and handlers, as a session wants them. */
export interface ClientSide {
  readonly capabilities: JsonObject
  readonly handlers: Readonly<Record<string, ServerRequestHandler>>
}

/** Declares exactly what there is somebody to answer for: "nobody can answer" is not "declined". */
export function clientSide({ elicit, sample, roots }: HostHandlers): ClientSide {
  return {
    capabilities: {
      ...(elicit === undefined ? {} : { elicitation: { form: {}, url: {} } }),
      ...(sample === undefined ? {} : { sampling: {} }),
      ...(roots === undefined ? {} : { roots: {} }),
    },
    handlers: {
      ...(elicit === undefined ? {} : { 'elicitation/create': guarded(elicit as ServerRequestHandler) }),
      ...(sample === undefined ? {} : { 'sampling/createMessage': guarded(sample) }),
      ...(roots === undefined ? {} : { 'roots/list': guarded(roots) }),
    },
  }
}
