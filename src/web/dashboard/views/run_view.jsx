// run_view.jsx - one run if the address names it, otherwise the table.
import { Run } from "./run.jsx";
import { Runs } from "./runs.jsx";

export const RunView = ({ place }) => place.id ? <Run key={place.id} place={place} /> : <Runs place={place} />;
