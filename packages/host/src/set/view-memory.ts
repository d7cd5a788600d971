import { type NamePolicy, type ToolSnapshot, type ToolView, toolView } from '../catalog/index.ts'
import { sameCapture } from './captured-view.ts'

/** The last view that was named. */
export class ViewMemory {
  #known: { readonly snapshots: readonly ToolSnapshot[]; readonly view: ToolView } | undefined

  /** Named anew only when a server came, went or listed something else. */
  viewOf(snapshots: readonly ToolSnapshot[], names: NamePolicy): ToolView {
    const known = this.#known
    if (known !== undefined && sameCapture(known.snapshots, snapshots)) return known.view
    const view = toolView(snapshots, names)
    this.#known = { snapshots, view }
    return view
  }
}
