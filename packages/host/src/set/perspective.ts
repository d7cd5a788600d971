// Who looks at the servers of a host: a thread sees what it has selected itself, and knows which plugins things belong to.
import type { Attribution } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { CapturedView } from './captured-view.ts'
import type { Generation } from './generation.ts'
import { ViewMemory } from './view-memory.ts'

/** What one of those who look knows. Make another one when any of it changes: bindings of one perspective share what they see. */
export class Perspective {
  readonly attribution: Attribution
  /** Is the server there for whoever looks? */
  readonly sees: (definition: ServerDefinition) => boolean
  /** What was seen last of each generation. */
  readonly captured: WeakMap<Generation, CapturedView> = new WeakMap()
  readonly views: ViewMemory = new ViewMemory()

  constructor({ attribution, sees }: Pick<Perspective, 'attribution' | 'sees'>) {
    this.attribution = attribution
    this.sees = sees
  }
}
