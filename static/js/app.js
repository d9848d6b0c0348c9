// Where the page's scripts begin.
import "./elements/chat_answer.js";
import "./elements/chat_composer.js";
import "./elements/chat_page.js";
import "./elements/chat_sidebar.js";
import "./elements/code_block.js";
import "./elements/limits_line.js";
import "./elements/message_list.js";
import "./elements/model_choice.js";
import { live } from "./page/live.js";

live.start();
