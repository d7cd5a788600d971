import { connCalls } from './conn/calls.ts'
import { connCatalogs } from './conn/catalogs.ts'
import { connQuestions } from './conn/questions.ts'
import { connReuse } from './conn/reuse.ts'
import { connStarts } from './conn/starts.ts'
import type { Requirement } from './requirement.ts'

/** The scenarios of the connection layer, by their numbers in the design. */
export const conn: readonly Requirement[] = [
  ...connStarts,
  ...connReuse,
  ...connCatalogs,
  ...connCalls,
  ...connQuestions,
]
