// run_view.jsx - one run when the address names it, else all.
import { Run } from "./run.jsx";
import { Runs } from "./runs.jsx";

export const RunView = ({ place }) => place.id ? <Run key={place.id} place={place} /> : <Runs place={place} />;
